-- create --
-- None where the tenant has as many as it may.
WITH added AS (
    INSERT INTO workflows (id, tenant_id, created_at, updated_at, subscription)
    SELECT %(id)s, %(tenant)s, %(now)s, %(now)s, %(subscription)s
     WHERE (SELECT count(*) FROM workflows WHERE tenant_id = %(tenant)s) < %(most)s
    RETURNING id
)
INSERT INTO workflow_versions (workflow, version, tenant_id, content, created_at)
SELECT id, 1, %(tenant)s, %(content)s::json, %(now)s
  FROM added
RETURNING version;

-- replace --
-- A new version in force, if it is the one that is expected; none where as many are kept as may be.
WITH changed AS (
    UPDATE workflows
       SET version = version + 1,
           updated_at = %(now)s,
           subscription = %(subscription)s
     WHERE id = %(id)s
       AND tenant_id = %(tenant)s
       AND version = %(expected)s
       AND (SELECT count(*) FROM workflow_versions
             WHERE workflow = %(id)s AND tenant_id = %(tenant)s) < %(most)s
    RETURNING id, version
)
INSERT INTO workflow_versions (workflow, version, tenant_id, content, created_at)
SELECT id, version, %(tenant)s, %(content)s::json, %(now)s
  FROM changed
RETURNING version;

-- forget_versions --
-- Of the older ones those of which no atom waits, or is dead.
DELETE FROM workflow_versions
 WHERE workflow = %(id)s
   AND tenant_id = %(tenant)s
   AND version <= (SELECT version FROM workflows
                    WHERE id = %(id)s AND tenant_id = %(tenant)s) - %(kept)s
   AND NOT EXISTS (SELECT FROM atoms
                    WHERE atoms.tenant_id = %(tenant)s
                      AND atoms.workflow = workflow_versions.workflow
                      AND atoms.version = workflow_versions.version)
   AND NOT EXISTS (SELECT FROM dead_atoms
                    WHERE dead_atoms.tenant_id = %(tenant)s
                      AND dead_atoms.workflow = workflow_versions.workflow
                      AND dead_atoms.version = workflow_versions.version)
RETURNING version;

-- list --
SELECT id, version, created_at, updated_at
  FROM workflows
 WHERE tenant_id = %(tenant)s
   AND id > %(after)s
 ORDER BY id
 LIMIT %(limit)s;

-- content --
-- Of the version in force, unless another one is named.
SELECT workflow_versions.version, content::text, workflows.version, workflows.created_at,
       updated_at, subscription
  FROM workflows
  JOIN workflow_versions ON workflow = id
   AND workflow_versions.tenant_id = workflows.tenant_id
   AND workflow_versions.version = coalesce(%(version)s, workflows.version)
 WHERE id = %(id)s
   AND workflows.tenant_id = %(tenant)s;

-- versions --
SELECT version, created_at
  FROM workflow_versions
 WHERE workflow = %(id)s
   AND tenant_id = %(tenant)s
 ORDER BY version;

-- delete --
-- With all that waits, is dead or collected.
WITH waiting AS (
    DELETE FROM atoms
     WHERE tenant_id = %(tenant)s
       AND workflow = %(id)s
), running AS (
    DELETE FROM workflow_instances
     WHERE tenant_id = %(tenant)s
       AND workflow = %(id)s
), unsubscribed AS (
    DELETE FROM subscriptions
     WHERE tenant_id = %(tenant)s
       AND id = (SELECT subscription FROM workflows
                  WHERE id = %(id)s AND tenant_id = %(tenant)s)
)
DELETE FROM workflows
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
RETURNING id;

-- collected --
-- The newest first.
SELECT id, entered_at, collected_at, body
  FROM collected_atoms
 WHERE workflow = %(id)s
   AND tenant_id = %(tenant)s
   AND id < %(before)s
 ORDER BY id DESC
 LIMIT %(limit)s;

-- dead --
-- The newest first.
SELECT id, version, step, entered_at, died_at, attempts, reason, body
  FROM dead_atoms
 WHERE workflow = %(id)s
   AND tenant_id = %(tenant)s
   AND id < %(before)s
 ORDER BY id DESC
 LIMIT %(limit)s;

-- redrive --
-- Those that are dead now wait once more, as if they had just come to where they died.
WITH revived AS (
    DELETE FROM dead_atoms
     WHERE id = ANY(ARRAY(SELECT id
                            FROM dead_atoms
                           WHERE workflow = %(id)s
                             AND tenant_id = %(tenant)s
                           ORDER BY id
                           LIMIT %(limit)s))
       AND tenant_id = %(tenant)s
    RETURNING version, step, entered_at, body
), put AS (
    INSERT INTO atoms (tenant_id, workflow, version, step, visible_at, entered_at, body)
    SELECT %(tenant)s, %(id)s, version, step, %(now)s, entered_at, body
      FROM revived
    RETURNING id
)
SELECT count(*), pg_notify('atoms', '')::text
  FROM put;

-- hours --
-- What each step has done since.
SELECT step, sum(atoms)::bigint, sum(made)::bigint, sum(failed)::bigint, sum(dead)::bigint,
       sum(processor_us)::bigint, sum(mebibyte_ms)::bigint
  FROM workflow_hours
 WHERE workflow = %(id)s
   AND tenant_id = %(tenant)s
   AND hour >= %(since)s
 GROUP BY step;

-- instances --
-- That run now, by version and step.
SELECT version, step, count(*)
  FROM workflow_instances
 WHERE tenant_id = %(tenant)s
   AND workflow = %(id)s
   AND ends_at > %(now)s
 GROUP BY version, step;

-- queues --
-- How much is in each queue, since when, and how often the most tried of the first ones was.
SELECT counted.version, counted.step, counted.atoms, counted.bytes, first.entered_at,
       first.attempts, first.held
  FROM (SELECT version, step, sum(atoms)::bigint AS atoms, sum(bytes)::bigint AS bytes
          FROM atom_counts
         WHERE tenant_id = %(tenant)s
           AND workflow = %(id)s
         GROUP BY version, step
        HAVING sum(atoms) > 0) AS counted
  LEFT JOIN LATERAL (
       SELECT min(entered_at) AS entered_at, max(attempts) AS attempts,
              count(*) FILTER (WHERE taken_by IS NOT NULL) AS held
         FROM (SELECT entered_at, attempts, taken_by
                 FROM atoms
                WHERE tenant_id = %(tenant)s
                  AND workflow = %(id)s
                  AND version = counted.version
                  AND step = counted.step
                ORDER BY visible_at, id
                LIMIT 1000) AS firsts) AS first ON true
 ORDER BY counted.version, counted.step;

-- dead_counts --
SELECT version, step, count(*)
  FROM dead_atoms
 WHERE workflow = %(id)s
   AND tenant_id = %(tenant)s
 GROUP BY version, step;

-- forget --
-- Between tenants: what is too old goes, whosesoever it is; some of it at once.
-- Dead letters after so many days.
DELETE FROM dead_atoms
 WHERE id = ANY(ARRAY(SELECT id FROM dead_atoms WHERE died_at < %(before)s LIMIT %(most)s))
RETURNING id;

-- forget_collected --
-- Between tenants: what is too old goes, whosesoever it is; some of it at once.
DELETE FROM collected_atoms
 WHERE id = ANY(ARRAY(SELECT id FROM collected_atoms
                       WHERE collected_at < %(before)s LIMIT %(most)s))
RETURNING id;

-- forget_hours --
-- Between tenants: what is too old goes, whosesoever it is; some of it at once.
DELETE FROM workflow_hours
 WHERE ctid = ANY(ARRAY(SELECT ctid FROM workflow_hours WHERE hour < %(hours_before)s
                         LIMIT %(most)s))
RETURNING hour;

-- hold_looks --
-- Until the transaction ends nobody looks for it: what is deleted then is all that there is.
SELECT pg_advisory_xact_lock(hashtextextended(%(id)s, 300));

-- look --
-- The store of its files is looked at from now on, as this version says.
INSERT INTO atoms (tenant_id, workflow, version, step, visible_at, entered_at, body)
SELECT %(tenant)s, %(id)s, %(version)s, %(step)s, %(now)s, %(now)s, '{}'
RETURNING pg_notify('atoms', '')::text;

-- look_no_more --
-- As another version says it.
DELETE FROM atoms
 WHERE tenant_id = %(tenant)s
   AND workflow = %(id)s
   AND step = %(step)s;

-- forget_files --
-- Those of another source: none of them has come into this one.
WITH looked AS (
    DELETE FROM workflow_looks
     WHERE workflow = %(id)s
       AND tenant_id = %(tenant)s
)
DELETE FROM workflow_files
 WHERE workflow = %(id)s
   AND tenant_id = %(tenant)s;

-- files --
-- How its store was when it was looked at last, and how many files of it are kept in mind.
SELECT looked_at, trouble, is_full, known
  FROM workflow_looks
 WHERE workflow = %(id)s
   AND tenant_id = %(tenant)s;

-- used --
-- What the tenant's workflows have done in these hours, summed up by what is asked for, a page at a
-- time.
SELECT key, sum(atoms)::bigint, sum(made)::bigint, sum(failed)::bigint, sum(dead)::bigint,
       sum(processor_us)::bigint, sum(mebibyte_ms)::bigint
  FROM (SELECT CASE %(by)s
               WHEN 'hour' THEN lpad(hour::text, 16, '0')
               WHEN 'day' THEN lpad((hour / 86400000 * 86400000)::text, 16, '0')
               WHEN 'workflow' THEN workflow
               WHEN 'step' THEN workflow || '/' || step
               ELSE '' END COLLATE "C" AS key,
               workflow_hours.atoms, made, failed, dead, processor_us, mebibyte_ms
          FROM workflow_hours
         WHERE workflow_hours.tenant_id = %(tenant)s
           AND hour >= %(from)s
           AND hour <= %(to)s) AS done
 WHERE key > %(after)s OR %(after)s IS NULL
 GROUP BY key
 ORDER BY key
 LIMIT %(rows)s;
