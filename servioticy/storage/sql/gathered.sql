-- open --
-- The object that atoms of this hour go into, and nobody else puts any, or seals it, until the
-- transaction ends; none where there is no such object yet.
SELECT number
  FROM workflow_objects
 WHERE workflow = %(workflow)s
   AND tenant_id = %(tenant)s
   AND version = %(version)s
   AND hour = %(hour)s
   AND NOT sealed
   FOR UPDATE;

-- make --
-- The next object of the hour; none where another one has made it meanwhile, or the workflow is
-- gone.
INSERT INTO workflow_objects (workflow, tenant_id, version, hour, number)
SELECT id, tenant_id, %(version)s, %(hour)s,
       (SELECT coalesce(max(number) + 1, 0)
          FROM workflow_objects
         WHERE workflow = %(workflow)s
           AND tenant_id = %(tenant)s
           AND version = %(version)s
           AND hour = %(hour)s)
  FROM workflows
 WHERE id = %(workflow)s
   AND tenant_id = %(tenant)s
    ON CONFLICT DO NOTHING
RETURNING number;

-- ticket --
-- Who takes this atom writes the object.
INSERT INTO atoms (tenant_id, workflow, version, step, visible_at, entered_at, body)
VALUES (%(tenant)s, %(workflow)s, %(version)s, %(step)s, %(at)s, %(now)s, %(ticket)s);

-- gather --
-- Atoms that have come to the sink are in an object now: of those that are still this instance's.
-- Without an object they go only where the workflow is gone.
-- Bytes are counted with what a row takes beside its text.
WITH done AS (
    DELETE FROM atoms
     WHERE id = ANY(%(ids)s::bigint[])
       AND tenant_id = %(tenant)s
       AND taken_by = %(instance)s
       AND (%(number)s::integer IS NOT NULL
            OR NOT EXISTS (SELECT FROM workflows
                            WHERE id = %(workflow)s AND tenant_id = %(tenant)s))
    RETURNING id, body
), kept AS (
    INSERT INTO gathered_atoms (tenant_id, workflow, version, hour, number, body)
    SELECT %(tenant)s, %(workflow)s, %(version)s, %(hour)s, %(number)s, done.body
      FROM done
     WHERE %(number)s::integer IS NOT NULL
     ORDER BY done.id
    RETURNING octet_length(body) + 100 AS size
)
SELECT (SELECT count(*) FROM done), (SELECT coalesce(sum(size), 0)::bigint FROM kept);

-- grow --
UPDATE workflow_objects
   SET bytes = bytes + %(size)s,
       sealed = bytes + %(size)s >= %(most)s
 WHERE workflow = %(workflow)s
   AND tenant_id = %(tenant)s
   AND version = %(version)s
   AND hour = %(hour)s
   AND number = %(number)s
RETURNING sealed;

-- hurry --
-- Its ticket may be taken now.
UPDATE atoms
   SET visible_at = least(visible_at, %(now)s)
 WHERE tenant_id = %(tenant)s
   AND workflow = %(workflow)s
   AND version = %(version)s
   AND step = %(step)s
   AND body = %(ticket)s
RETURNING pg_notify('atoms', '')::text;

-- seal --
-- Nothing more comes into it; who was about to put something has done so before this ends.
UPDATE workflow_objects
   SET sealed = true
 WHERE workflow = %(workflow)s
   AND tenant_id = %(tenant)s
   AND version = %(version)s
   AND hour = %(hour)s
   AND number = %(number)s;

-- rows --
-- All that it has, in the order in which it came.
SELECT body
  FROM gathered_atoms
 WHERE workflow = %(workflow)s
   AND tenant_id = %(tenant)s
   AND version = %(version)s
   AND hour = %(hour)s
   AND number = %(number)s
 ORDER BY id;

-- written --
-- It is in the store: its atoms go, and so does its ticket; its number is not given again.
WITH ticket AS (
    DELETE FROM atoms
     WHERE id = %(id)s
       AND tenant_id = %(tenant)s
       AND taken_by = %(instance)s
    RETURNING id
), gone AS (
    DELETE FROM gathered_atoms
     WHERE workflow = %(workflow)s
       AND tenant_id = %(tenant)s
       AND version = %(version)s
       AND hour = %(hour)s
       AND number = %(number)s
       AND EXISTS (SELECT FROM ticket)
), emptied AS (
    UPDATE workflow_objects
       SET bytes = 0
     WHERE workflow = %(workflow)s
       AND tenant_id = %(tenant)s
       AND version = %(version)s
       AND hour = %(hour)s
       AND number = %(number)s
       AND EXISTS (SELECT FROM ticket)
)
SELECT count(*)
  FROM ticket;

-- forget --
-- What was written of hours into which nothing can come any more.
DELETE FROM workflow_objects
 WHERE workflow = %(workflow)s
   AND tenant_id = %(tenant)s
   AND sealed
   AND bytes = 0
   AND hour < %(before)s;

-- held --
-- Between tenants: whose atoms are too many is asked of all.
-- Bytes that are gathered of each.
SELECT tenant_id, sum(bytes)::bigint
  FROM workflow_objects
 WHERE bytes > 0
 GROUP BY tenant_id;

-- lost --
-- Between tenants: what nobody can write any more is asked of all.
-- Objects whose tickets were dead letters, and are no more: some of them.
SELECT tenant_id, workflow, version, hour, number
  FROM workflow_objects AS own
 CROSS JOIN LATERAL (SELECT '{"hour":' || hour || ',"number":' || number || '}' AS body) AS ticket
 WHERE bytes > 0
   AND hour < %(before)s
   AND NOT EXISTS (SELECT FROM atoms
                    WHERE atoms.tenant_id = own.tenant_id
                      AND atoms.workflow = own.workflow
                      AND atoms.version = own.version
                      AND atoms.body = ticket.body)
   AND NOT EXISTS (SELECT FROM dead_atoms
                    WHERE dead_atoms.tenant_id = own.tenant_id
                      AND dead_atoms.workflow = own.workflow
                      AND dead_atoms.version = own.version
                      AND dead_atoms.body = ticket.body)
 LIMIT %(most)s;

-- forget_lost --
-- One of them, with its atoms.
WITH gone AS (
    DELETE FROM gathered_atoms
     WHERE workflow = %(workflow)s
       AND tenant_id = %(tenant)s
       AND version = %(version)s
       AND hour = %(hour)s
       AND number = %(number)s
)
DELETE FROM workflow_objects
 WHERE workflow = %(workflow)s
   AND tenant_id = %(tenant)s
   AND version = %(version)s
   AND hour = %(hour)s
   AND number = %(number)s;
