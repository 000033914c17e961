-- create --
-- None where the tenant has as many as it may.
WITH added AS (
    INSERT INTO templates (id, tenant_id, created_at, updated_at)
    SELECT %(id)s, %(tenant)s, %(now)s, %(now)s
     WHERE (SELECT count(*) FROM templates
             WHERE tenant_id = %(tenant)s AND deleted_at IS NULL) < %(most)s
    RETURNING id
)
INSERT INTO template_versions (template, version, tenant_id, content, created_at)
SELECT id, 1, %(tenant)s, %(content)s::json, %(now)s
  FROM added
RETURNING version;

-- list --
SELECT id, version, created_at, updated_at,
       (SELECT count(*) FROM template_objects
         WHERE template = templates.id AND tenant_id = templates.tenant_id)
  FROM templates
 WHERE tenant_id = %(tenant)s
   AND deleted_at IS NULL
   AND id > %(after)s
 ORDER BY id
 LIMIT %(limit)s;

-- content --
-- Of the version in force, unless another one is named.
SELECT template_versions.version, content::text, templates.version, updated_at
  FROM templates
  JOIN template_versions ON template = id
   AND template_versions.tenant_id = templates.tenant_id
   AND template_versions.version = coalesce(%(version)s, templates.version)
 WHERE id = %(id)s
   AND templates.tenant_id = %(tenant)s
   AND deleted_at IS NULL;

-- counts --
-- How many follow it, by the version that they have.
SELECT version, count(*)
  FROM template_objects
 WHERE template = %(id)s
   AND tenant_id = %(tenant)s
 GROUP BY version
 ORDER BY version;

-- streams_of_objects --
-- How many follow it, or are to be made from it, with the number of streams that each has: or will
-- have, where a roll-out that is not finished gives it more.
WITH coming AS (
    SELECT streams_in(content) AS streams
      FROM jobs
      JOIN template_versions ON template_versions.template = jobs.template
       AND template_versions.version = jobs.version
       AND template_versions.tenant_id = jobs.tenant_id
     WHERE jobs.template = %(id)s
       AND jobs.tenant_id = %(tenant)s
       AND kind = 'roll-out'
       AND state IN ('waiting', 'running')
)
SELECT objects, greatest(streams_in(content), (SELECT max(streams) FROM coming))
  FROM (SELECT version, count(*) AS objects
          FROM template_objects
         WHERE template = %(id)s
           AND tenant_id = %(tenant)s
         GROUP BY version) AS following
  JOIN template_versions ON template_versions.template = %(id)s
   AND template_versions.version = following.version
   AND template_versions.tenant_id = %(tenant)s
 UNION ALL
SELECT (total - done - failed)::bigint, streams_in(content)
  FROM jobs
  JOIN template_versions ON template_versions.template = jobs.template
   AND template_versions.version = jobs.version
   AND template_versions.tenant_id = jobs.tenant_id
 WHERE jobs.template = %(id)s
   AND jobs.tenant_id = %(tenant)s
   AND kind = 'creation'
   AND state IN ('waiting', 'running');

-- versions --
SELECT version, created_at
  FROM template_versions
 WHERE template = %(id)s
   AND tenant_id = %(tenant)s
 ORDER BY version;

-- objects --
SELECT service_object, version, parameters::text
  FROM template_objects
 WHERE template = %(id)s
   AND tenant_id = %(tenant)s
   AND service_object > %(after)s
 ORDER BY service_object
 LIMIT %(limit)s;

-- template_of --
SELECT template
  FROM template_objects
 WHERE service_object = %(service_object)s
   AND tenant_id = %(tenant)s;

-- replace --
-- Another version in force, a new one where there is content; its objects follow by a job, and
-- jobs that have not finished bringing them elsewhere end.
WITH changed AS (
    UPDATE templates
       SET version = coalesce(%(version)s, newest_version + 1),
           newest_version = greatest(newest_version, coalesce(%(version)s, newest_version + 1)),
           updated_at = %(now)s
     WHERE id = %(id)s
       AND tenant_id = %(tenant)s
       AND deleted_at IS NULL
       AND version = coalesce(%(expected)s, version)
       AND (%(version)s::integer IS NOT NULL OR newest_version < %(most)s)
    RETURNING id, version
), added AS (
    INSERT INTO template_versions (template, version, tenant_id, content, created_at)
    SELECT id, version, %(tenant)s, %(content)s::json, %(now)s
      FROM changed
     WHERE %(content)s::json IS NOT NULL
), ended AS (
    UPDATE jobs
       SET state = 'superseded', updated_at = %(now)s
     WHERE template = (SELECT id FROM changed)
       AND tenant_id = %(tenant)s
       AND kind = 'roll-out'
       AND state IN ('waiting', 'running')
)
INSERT INTO jobs (id, tenant_id, kind, template, version, created_at, updated_at)
SELECT %(job)s, %(tenant)s, 'roll-out', id, version, %(now)s, %(now)s
  FROM changed
RETURNING version;

-- delete --
-- Unless Service Objects follow it, or are still being made.
UPDATE templates
   SET deleted_at = %(now)s
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
   AND deleted_at IS NULL
   AND NOT EXISTS (SELECT FROM template_objects
                    WHERE template = %(id)s AND tenant_id = %(tenant)s)
   AND NOT EXISTS (SELECT FROM jobs
                    WHERE template = %(id)s AND tenant_id = %(tenant)s
                      AND state IN ('waiting', 'running') AND kind = 'creation')
RETURNING id;

-- forget --
-- Those that were deleted an hour ago or earlier.
DELETE FROM templates
 WHERE tenant_id = %(tenant)s
   AND deleted_at < %(before)s
   AND NOT EXISTS (SELECT FROM template_objects
                    WHERE template = templates.id AND tenant_id = %(tenant)s);
