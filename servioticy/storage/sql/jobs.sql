-- make_objects --
-- A job that makes Service Objects of these ids; none where the tenant has as many jobs as it may.
WITH added AS (
    INSERT INTO jobs (id, tenant_id, kind, template, version, total, created_at, updated_at)
    SELECT %(job)s, %(tenant)s, 'creation', id, version, cardinality(%(ids)s::text[]),
           %(now)s, %(now)s
      FROM templates
     WHERE id = %(template)s
       AND tenant_id = %(tenant)s
       AND version = %(version)s
       AND deleted_at IS NULL
       AND (SELECT count(*) FROM jobs
             WHERE tenant_id = %(tenant)s AND state IN ('waiting', 'running')) < %(most)s
    RETURNING id
)
INSERT INTO job_items (job, number, tenant_id, service_object, parameters)
SELECT added.id, item.number, %(tenant)s, item.service_object, item.parameters::json
  FROM added
 CROSS JOIN unnest(%(ids)s::text[], %(parameters)s::text[])
       WITH ORDINALITY AS item (service_object, parameters, number)
RETURNING number;

-- forget --
-- Finished jobs, but the latest ones.
DELETE FROM jobs
 WHERE tenant_id = %(tenant)s
   AND state IN ('done', 'superseded', 'failed')
   AND sequence < (SELECT sequence FROM jobs
                    WHERE tenant_id = %(tenant)s
                      AND state IN ('done', 'superseded', 'failed')
                    ORDER BY sequence DESC OFFSET %(keep)s LIMIT 1);

-- job --
SELECT id, kind, template, version, state, total, done, failed, failures::text, created_at,
       updated_at, service_object, stream, since, until, began_at
  FROM jobs
  LEFT JOIN backfills ON job = id AND backfills.tenant_id = jobs.tenant_id
 WHERE id = %(id)s
   AND jobs.tenant_id = %(tenant)s;

-- list --
SELECT id, kind, template, version, state, total, done, failed, failures::text, created_at,
       updated_at, service_object, stream, since, until, began_at
  FROM jobs
  LEFT JOIN backfills ON job = id AND backfills.tenant_id = jobs.tenant_id
 WHERE jobs.tenant_id = %(tenant)s
 ORDER BY sequence DESC
 LIMIT %(limit)s;

-- lock --
-- Of this turn: whoever dies gives it back.
SELECT pg_try_advisory_lock(%(key)s);

-- unlock --
SELECT pg_advisory_unlock(%(key)s);

-- next --
-- Between tenants: work for all of them goes on by turns.
-- Whose turn it is: of each template the oldest job that is not finished.
UPDATE jobs
   SET turn = nextval('job_turns'), state = 'running',
       total = coalesce(total, (
           SELECT count(*) FROM template_objects
            WHERE template_objects.template = jobs.template
              AND template_objects.tenant_id = jobs.tenant_id
              AND template_objects.version <> jobs.version))
 WHERE id = (SELECT id
               FROM jobs AS waiting
              WHERE kind <> 'backfill'
                AND state IN ('waiting', 'running')
                AND NOT EXISTS (
                    SELECT FROM jobs AS older
                     WHERE older.template = waiting.template
                       AND older.state IN ('waiting', 'running')
                       AND older.sequence < waiting.sequence)
              ORDER BY turn
              LIMIT 1)
RETURNING id, tenant_id, kind, template, version, reached;

-- content --
SELECT version, content::text
  FROM template_versions
 WHERE template = %(template)s
   AND tenant_id = %(tenant)s
   AND version = ANY(%(versions)s::integer[]);

-- items --
SELECT number, service_object, parameters::text,
       EXISTS (SELECT FROM service_objects
                WHERE service_objects.id = job_items.service_object
                  AND service_objects.tenant_id = job_items.tenant_id) AS made
  FROM job_items
 WHERE job = %(job)s
   AND job_items.tenant_id = %(tenant)s
 ORDER BY number
 LIMIT %(limit)s;

-- followers --
-- The next ones that a roll-out has to change, as they are now.
SELECT id, template_objects.version, parameters::text, service_objects.version, revision,
       document::text, custom_fields::text, service_objects.created_at
  FROM template_objects
  JOIN service_objects ON id = template_objects.service_object
   AND service_objects.tenant_id = template_objects.tenant_id
   AND deleted_at IS NULL
  JOIN definitions ON definitions.service_object = id
   AND definitions.version = service_objects.version
   AND definitions.tenant_id = service_objects.tenant_id
 WHERE template = %(template)s
   AND template_objects.tenant_id = %(tenant)s
   AND template_objects.version <> %(version)s
   AND template_objects.service_object > %(reached)s
 ORDER BY template_objects.service_object
 LIMIT %(limit)s;

-- made --
-- These items are done, some of them in vain.
WITH gone AS (
    DELETE FROM job_items
     WHERE job = %(job)s
       AND tenant_id = %(tenant)s
       AND number = ANY(%(numbers)s::integer[])
    RETURNING number
)
UPDATE jobs
   SET done = done + (SELECT count(*) FROM gone) - %(failed)s,
       failed = failed + %(failed)s,
       failures = %(failures)s,
       state = CASE WHEN %(last)s THEN 'done' ELSE state END,
       updated_at = %(now)s
 WHERE id = %(job)s
   AND tenant_id = %(tenant)s
   AND state = 'running';

-- rolled_out --
-- Up to this Service Object; what is done is what need not be done any more.
UPDATE jobs
   SET reached = %(reached)s,
       failed = failed + %(failed)s,
       failures = %(failures)s,
       done = greatest(0, total - failed - %(failed)s - (
           SELECT count(*) FROM template_objects
            WHERE template = jobs.template
              AND template_objects.tenant_id = jobs.tenant_id
              AND template_objects.version <> jobs.version
              AND service_object > %(reached)s)),
       state = CASE WHEN %(last)s THEN 'done' ELSE state END,
       updated_at = %(now)s
 WHERE id = %(job)s
   AND jobs.tenant_id = %(tenant)s
   AND state = 'running';

-- failures --
SELECT failures::text
  FROM jobs
 WHERE id = %(job)s
   AND tenant_id = %(tenant)s;
