-- put --
-- Atoms come into the version in force; none where there is no such workflow.
-- Each goes to each of the steps that the source is linked to.
WITH put AS (
    INSERT INTO atoms (tenant_id, workflow, version, step, visible_at, entered_at, body)
    SELECT %(tenant)s, workflows.id, workflows.version, to_step.step, %(now)s + to_step.delay,
           given.entered_at, given.body
      FROM workflows
     CROSS JOIN unnest(%(bodies)s::text[], %(entered)s::bigint[]) WITH ORDINALITY
           AS given (body, entered_at, place)
     CROSS JOIN unnest(%(steps)s::integer[], %(delays)s::bigint[]) AS to_step (step, delay)
     WHERE workflows.id = %(workflow)s
       AND workflows.tenant_id = %(tenant)s
       AND workflows.version = %(version)s
     ORDER BY given.place
    RETURNING id
)
SELECT count(*), pg_notify('atoms', '')::text
  FROM put;

-- held --
-- How many atoms, and bytes of them, wait for the tenant in all its workflows; with bytes that are
-- gathered for objects of stores.
SELECT coalesce(sum(atoms), 0)::bigint,
       coalesce(sum(bytes), 0)::bigint
     + (SELECT coalesce(sum(workflow_objects.bytes), 0)::bigint
          FROM workflow_objects
         WHERE workflow_objects.tenant_id = %(tenant)s)
  FROM atom_counts
 WHERE atom_counts.tenant_id = %(tenant)s;

-- in_force --
SELECT workflows.version, content::text
  FROM workflows
  JOIN workflow_versions ON workflow = id
   AND workflow_versions.tenant_id = workflows.tenant_id
   AND workflow_versions.version = workflows.version
 WHERE workflows.id = %(workflow)s
   AND workflows.tenant_id = %(tenant)s;

-- document --
SELECT content::text
  FROM workflow_versions
 WHERE workflow = %(workflow)s
   AND tenant_id = %(tenant)s
   AND version = %(version)s;

-- waiting --
-- Between tenants: whose atoms are taken next is decided by what waits for all.
-- The queues in which something is, how much of it may be taken now, up to a number, and when the
-- next of it may be. From one to the next by the index: of those that are empty nothing is read.
WITH RECURSIVE queues AS (
    (SELECT tenant_id, workflow, version, step
       FROM atoms
      ORDER BY tenant_id, workflow, version, step
      LIMIT 1)
     UNION ALL
    SELECT next.*
      FROM queues
     CROSS JOIN LATERAL (
           SELECT tenant_id, workflow, version, step
             FROM atoms
            WHERE (tenant_id, workflow, version, step)
                  > (queues.tenant_id, queues.workflow, queues.version, queues.step)
            ORDER BY tenant_id, workflow, version, step
            LIMIT 1) AS next
)
SELECT queues.tenant_id, queues.workflow, queues.version, queues.step, counted.atoms,
       counted.bytes, ready.atoms, first.visible_at
  FROM queues
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(atoms), 0)::bigint AS atoms, coalesce(sum(bytes), 0)::bigint AS bytes
         FROM atom_counts
        WHERE tenant_id = queues.tenant_id
          AND workflow = queues.workflow
          AND version = queues.version
          AND step = queues.step) AS counted
 CROSS JOIN LATERAL (
       SELECT count(*) AS atoms
         FROM (SELECT
                 FROM atoms
                WHERE tenant_id = queues.tenant_id
                  AND workflow = queues.workflow
                  AND version = queues.version
                  AND step = queues.step
                  AND visible_at <= %(now)s
                LIMIT %(most)s) AS firsts) AS ready
 CROSS JOIN LATERAL (
       SELECT visible_at
         FROM atoms
        WHERE tenant_id = queues.tenant_id
          AND workflow = queues.workflow
          AND version = queues.version
          AND step = queues.step
        ORDER BY visible_at
        LIMIT 1) AS first;

-- due --
-- Between tenants: it is asked whether there is work for anybody.
-- When the first atom may be taken, in milliseconds since 1970; null: there is none.
WITH RECURSIVE queues AS (
    (SELECT tenant_id, workflow, version, step
       FROM atoms
      ORDER BY tenant_id, workflow, version, step
      LIMIT 1)
     UNION ALL
    SELECT next.*
      FROM queues
     CROSS JOIN LATERAL (
           SELECT tenant_id, workflow, version, step
             FROM atoms
            WHERE (tenant_id, workflow, version, step)
                  > (queues.tenant_id, queues.workflow, queues.version, queues.step)
            ORDER BY tenant_id, workflow, version, step
            LIMIT 1) AS next
)
SELECT min(first.visible_at)
  FROM queues
 CROSS JOIN LATERAL (
       SELECT visible_at
         FROM atoms
        WHERE tenant_id = queues.tenant_id
          AND workflow = queues.workflow
          AND version = queues.version
          AND step = queues.step
        ORDER BY visible_at
        LIMIT 1) AS first;

-- hold_places --
-- Whether nobody else begins an instance for the tenant until the transaction ends.
SELECT pg_try_advisory_xact_lock(%(class)s, hashint8(%(tenant)s));

-- places --
-- The tenant's instances by queue, on whatever machines.
SELECT workflow, version, step, count(*)
  FROM workflow_instances
 WHERE tenant_id = %(tenant)s
   AND ends_at > %(now)s
 GROUP BY workflow, version, step;

-- elsewhere --
-- Between tenants: instances by queue that are not these, whosesoever they are.
SELECT tenant_id, workflow, version, step, count(*)
  FROM workflow_instances
 WHERE ends_at > %(now)s
   AND id <> ALL(%(instances)s::bigint[])
 GROUP BY tenant_id, workflow, version, step;

-- renew --
-- Between tenants: these live, whosesoever they are.
UPDATE workflow_instances
   SET ends_at = %(ends)s
 WHERE id = ANY(%(instances)s::bigint[]);

-- begin --
INSERT INTO workflow_instances (tenant_id, workflow, version, step, began_at, ends_at)
VALUES (%(tenant)s, %(workflow)s, %(version)s, %(step)s, %(now)s, %(ends)s)
RETURNING id;

-- end --
DELETE FROM workflow_instances
 WHERE tenant_id = %(tenant)s
   AND id = %(instance)s;

-- end_old --
-- Between tenants: those that were killed, whosesoever they were.
DELETE FROM workflow_instances
 WHERE ends_at < %(now)s;

-- take --
-- Some that may be taken, the longest visible first; nobody else sees them for a while. They are
-- chosen once: a subquery may be asked again for each row that it is joined with.
WITH chosen AS MATERIALIZED (
    SELECT id
      FROM atoms
     WHERE tenant_id = %(tenant)s
       AND workflow = %(workflow)s
       AND version = %(version)s
       AND step = %(step)s
       AND visible_at <= %(now)s
     ORDER BY visible_at, id
     LIMIT %(most)s
       FOR UPDATE SKIP LOCKED
)
UPDATE atoms
   SET visible_at = %(until)s,
       attempts = attempts + 1,
       taken_by = %(instance)s
  FROM chosen
 WHERE atoms.id = chosen.id
   AND atoms.tenant_id = %(tenant)s
RETURNING atoms.id, entered_at, attempts, body;

-- finish --
-- Atoms are done, and what was made of them waits: of those that are still this instance's.
WITH done AS (
    DELETE FROM atoms
     WHERE id = ANY(%(ids)s::bigint[])
       AND tenant_id = %(tenant)s
       AND taken_by = %(instance)s
    RETURNING id, entered_at
), made AS (
    INSERT INTO atoms (tenant_id, workflow, version, step, visible_at, entered_at, body)
    SELECT %(tenant)s, %(workflow)s, %(version)s, made.step, %(now)s + made.delay,
           done.entered_at, made.body
      FROM unnest(%(parents)s::bigint[], %(steps)s::integer[], %(delays)s::bigint[],
                  %(bodies)s::text[]) WITH ORDINALITY AS made (parent, step, delay, body, place)
      JOIN done ON done.id = made.parent
     ORDER BY made.place
)
SELECT count(*)
  FROM done;

-- collect --
-- Atoms that have come to a sink that collects; the workflow may be gone.
WITH done AS (
    DELETE FROM atoms
     WHERE id = ANY(%(ids)s::bigint[])
       AND tenant_id = %(tenant)s
       AND taken_by = %(instance)s
    RETURNING id, entered_at, body
), kept AS (
    INSERT INTO collected_atoms (tenant_id, workflow, entered_at, collected_at, body)
    SELECT %(tenant)s, %(workflow)s, done.entered_at, %(now)s, done.body
      FROM done
     WHERE EXISTS (SELECT FROM workflows
                    WHERE id = %(workflow)s AND tenant_id = %(tenant)s)
     ORDER BY done.id
)
SELECT count(*)
  FROM done;

-- forget_collected --
-- The oldest go where there are too many.
DELETE FROM collected_atoms
 WHERE workflow = %(workflow)s
   AND tenant_id = %(tenant)s
   AND id <= (SELECT id
                FROM collected_atoms
               WHERE workflow = %(workflow)s
                 AND tenant_id = %(tenant)s
               ORDER BY id DESC
              OFFSET %(most)s
               LIMIT 1);

-- give_back --
-- To be taken again at a time; where it was no attempt, that is not counted.
UPDATE atoms
   SET visible_at = given.visible_at,
       attempts = attempts - %(uncounted)s,
       taken_by = NULL
  FROM unnest(%(ids)s::bigint[], %(times)s::bigint[]) AS given (id, visible_at)
 WHERE atoms.id = given.id
   AND atoms.tenant_id = %(tenant)s
   AND taken_by = %(instance)s;

-- bury --
-- Dead letters of those that are still this instance's.
WITH gone AS (
    DELETE FROM atoms
     WHERE id = ANY(%(ids)s::bigint[])
       AND tenant_id = %(tenant)s
       AND taken_by = %(instance)s
    RETURNING id, workflow, version, step, entered_at, attempts, body
)
INSERT INTO dead_atoms (tenant_id, workflow, version, step, entered_at, died_at, attempts, reason,
                        body)
SELECT %(tenant)s, gone.workflow, gone.version, gone.step, gone.entered_at, %(now)s, gone.attempts,
       told.reason, gone.body
  FROM gone
  JOIN unnest(%(ids)s::bigint[], %(reasons)s::text[]) AS told (id, reason) ON told.id = gone.id
 WHERE EXISTS (SELECT FROM workflows
                WHERE id = gone.workflow AND tenant_id = %(tenant)s);

-- refuse --
-- What could not come in is dead at the first step.
INSERT INTO dead_atoms (tenant_id, workflow, version, step, entered_at, died_at, attempts, reason,
                        body)
SELECT %(tenant)s, id, %(version)s, 0, %(now)s, %(now)s, 0, %(reason)s, %(body)s
  FROM workflows
 WHERE id = %(workflow)s
   AND tenant_id = %(tenant)s;

-- forget_dead --
-- The oldest go where there are too many.
DELETE FROM dead_atoms
 WHERE workflow = %(workflow)s
   AND tenant_id = %(tenant)s
   AND id <= (SELECT id
                FROM dead_atoms
               WHERE workflow = %(workflow)s
                 AND tenant_id = %(tenant)s
               ORDER BY id DESC
              OFFSET %(most)s
               LIMIT 1);

-- drop --
-- Atoms of a workflow, or of a version of it, that is gone: they were put in the same moment.
WITH gone AS (
    DELETE FROM atoms
     WHERE tenant_id = %(tenant)s
       AND workflow = %(workflow)s
       AND version = %(version)s
       AND NOT EXISTS (SELECT FROM workflow_versions
                        WHERE workflow = %(workflow)s AND version = %(version)s
                          AND tenant_id = %(tenant)s)
)
DELETE FROM workflow_instances
 WHERE tenant_id = %(tenant)s
   AND workflow = %(workflow)s
   AND version = %(version)s;

-- forget_counts --
-- Between tenants: counts of what is gone, whosesoever it was.
DELETE FROM atom_counts AS counted
 WHERE NOT EXISTS (SELECT FROM workflow_versions
                    WHERE workflow = counted.workflow AND version = counted.version)
   AND (SELECT sum(atoms)
          FROM atom_counts
         WHERE tenant_id = counted.tenant_id
           AND workflow = counted.workflow
           AND version = counted.version
           AND step = counted.step) = 0;

-- note --
-- Between tenants: what was done for all of them is noted together.
-- What steps have done, on the account of the present hour.
INSERT INTO workflow_hours AS noted (tenant_id, workflow, step, hour, atoms, made, failed, dead,
                                     processor_us, mebibyte_ms)
SELECT workflows.tenant_id, did.workflow, did.step, this_hour(), did.atoms, did.made, did.failed,
       did.dead, did.processor_us, did.mebibyte_ms
  FROM unnest(%(tenants)s::bigint[], %(workflows)s::text[], %(steps)s::text[],
              %(atoms)s::bigint[], %(made)s::bigint[], %(failed)s::bigint[], %(dead)s::bigint[],
              %(processor_us)s::bigint[], %(mebibyte_ms)s::bigint[])
       AS did (tenant_id, workflow, step, atoms, made, failed, dead, processor_us, mebibyte_ms)
  JOIN workflows ON workflows.id = did.workflow
   AND workflows.tenant_id = did.tenant_id
 ORDER BY did.workflow, did.step
    ON CONFLICT (workflow, step, hour) DO UPDATE
   SET atoms = noted.atoms + excluded.atoms,
       made = noted.made + excluded.made,
       failed = noted.failed + excluded.failed,
       dead = noted.dead + excluded.dead,
       processor_us = noted.processor_us + excluded.processor_us,
       mebibyte_ms = noted.mebibyte_ms + excluded.mebibyte_ms;

-- hold_looks --
-- Until the transaction ends: nobody else looks for this workflow, or changes what is looked for.
SELECT pg_advisory_xact_lock(hashtextextended(%(workflow)s, 300));

-- hold --
-- Nobody else does anything with an atom until the transaction ends, if it is still this instance's.
SELECT id
  FROM atoms
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
   AND taken_by = %(instance)s
   FOR UPDATE;

-- known --
-- How many files of a workflow are kept in mind.
SELECT coalesce(max(known), 0)
  FROM workflow_looks
 WHERE workflow = %(workflow)s
   AND tenant_id = %(tenant)s;

-- room --
-- How many files of a tenant's other workflows are kept in mind, and how many of all may be.
SELECT coalesce(sum(known), 0)::bigint,
       coalesce((SELECT most
                   FROM quotas
                  WHERE tenant_id = %(tenant)s
                    AND name = 'files-known'), %(most)s)
  FROM workflow_looks
 WHERE workflow <> %(workflow)s
   AND tenant_id = %(tenant)s;

-- knows_behind --
-- Whether a file is kept in mind that stands behind this name in the list.
SELECT 1
  FROM workflow_files
 WHERE workflow = %(workflow)s
   AND tenant_id = %(tenant)s
   AND key > %(after)s COLLATE "C"
 LIMIT 1;

-- known_files --
-- Which of these are kept in mind, and with which content.
SELECT key, etag
  FROM workflow_files
 WHERE workflow = %(workflow)s
   AND tenant_id = %(tenant)s
   AND key = ANY(%(keys)s::text[]);

-- forget_files --
-- Those that their store has not any more, of a stretch of its list.
WITH gone AS (
    DELETE FROM workflow_files
     WHERE workflow = %(workflow)s
       AND tenant_id = %(tenant)s
       AND key > %(after)s COLLATE "C"
       AND (%(upto)s IS NULL OR key <= %(upto)s COLLATE "C")
       AND key <> ALL(%(keys)s::text[])
       AND EXISTS (SELECT FROM workflows
                    WHERE id = %(workflow)s AND tenant_id = %(tenant)s)
    RETURNING key
)
SELECT count(*)
  FROM gone;

-- see_files --
-- These, which are not known or had other content, are known from now on.
INSERT INTO workflow_files AS known (workflow, tenant_id, key, etag)
SELECT %(workflow)s, %(tenant)s, given.key, given.etag
  FROM unnest(%(keys)s::text[], %(etags)s::text[]) AS given (key, etag)
 WHERE EXISTS (SELECT FROM workflows
                WHERE id = %(workflow)s AND tenant_id = %(tenant)s)
 ORDER BY given.key
    ON CONFLICT (workflow, key) DO UPDATE
   SET etag = excluded.etag
 WHERE known.tenant_id = %(tenant)s
RETURNING key;

-- note_look --
-- How a look at a store has ended; the workflow may be gone.
INSERT INTO workflow_looks (workflow, tenant_id, looked_at, trouble, is_full, known)
SELECT id, tenant_id, %(now)s, %(trouble)s, %(is_full)s, %(known)s
  FROM workflows
 WHERE id = %(workflow)s
   AND tenant_id = %(tenant)s
    ON CONFLICT (workflow) DO UPDATE
   SET looked_at = excluded.looked_at,
       trouble = excluded.trouble,
       is_full = excluded.is_full,
       known = excluded.known;

-- public_id --
-- By what others know the tenant.
SELECT public_id
  FROM tenants
 WHERE id = %(tenant)s;
