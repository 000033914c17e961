-- order --
-- A job that fills; none where the tenant has as many unfinished ones as it may.
WITH added AS (
    INSERT INTO jobs (id, tenant_id, kind, created_at, updated_at)
    SELECT %(job)s, %(tenant)s, 'backfill', %(now)s, %(now)s
     WHERE (SELECT count(*) FROM jobs
             WHERE tenant_id = %(tenant)s
               AND kind = 'backfill'
               AND state IN ('waiting', 'running', 'swapping')) < %(most)s
    RETURNING id
)
INSERT INTO backfills (job, tenant_id, service_object, stream, since, until)
SELECT added.id, %(tenant)s, %(service_object)s, %(stream)s, %(since)s, %(until)s
  FROM added
RETURNING job;

-- cancel --
-- With all that it has computed; none where it has come to its end.
DELETE FROM jobs
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
   AND kind = 'backfill'
   AND state IN ('waiting', 'running', 'swapping')
RETURNING id;

-- component --
-- Of what is there, what is computed together with a Service Object, as it is in force for the
-- API; and whether that is so at the stored progress, too.
SELECT service_objects.id, sequence, service_objects.version,
       coalesce(active_version = service_objects.version, false) AS is_active, active_change,
       document::text, greatest(route_partition, ~route_partition)
  FROM service_objects
  JOIN definitions ON service_object = service_objects.id
   AND definitions.version = service_objects.version
   AND definitions.tenant_id = service_objects.tenant_id
 WHERE component = (SELECT component
                      FROM service_objects
                     WHERE id = %(service_object)s
                       AND tenant_id = %(tenant)s)
   AND service_objects.tenant_id = %(tenant)s
   AND deleted_at IS NULL
 ORDER BY sequence
 LIMIT %(limit)s;

-- streams --
-- Under which numbers the updates of these are stored.
SELECT streams.service_object, name, stored_as
  FROM unnest(%(service_objects)s::text[], %(streams)s::text[]) AS wanted (service_object, stream)
  JOIN streams ON streams.service_object = wanted.service_object
   AND streams.name = wanted.stream
   AND streams.tenant_id = %(tenant)s;

-- waits --
-- Whether updates of the tenant have come that are still to be computed.
SELECT EXISTS (SELECT FROM put_off WHERE tenant_id = %(tenant)s AND NOT taken_up);

-- progress --
SELECT log_partition, next_offset
  FROM progress;

-- stored_amount --
SELECT bytes
  FROM stored_amounts
 WHERE tenant_id = %(tenant)s;

-- count --
-- How many updates are to be read: not counted further than `most`.
SELECT count(*)
  FROM (SELECT
          FROM updates
         WHERE stream_id = ANY(%(streams)s::bigint[])
           AND tenant_id = %(tenant)s
           AND "timestamp" >= %(since)s
           AND "timestamp" < %(until)s
         LIMIT %(most)s) AS found;

-- unfinished --
-- Between tenants: work for all of them goes on by turns.
-- Of each tenant the oldest backfill that is not finished.
SELECT DISTINCT ON (jobs.tenant_id) jobs.id, jobs.tenant_id, state, service_object, stream, since,
       until, attempt
  FROM jobs
  JOIN backfills ON job = jobs.id
   AND backfills.tenant_id = jobs.tenant_id
 WHERE state IN ('waiting', 'running', 'swapping')
 ORDER BY jobs.tenant_id, sequence;

-- begin --
-- Anew, whatever somebody has computed of it.
WITH begun AS (
    UPDATE jobs
       SET state = 'running', total = %(total)s, done = 0, updated_at = %(now)s
     WHERE id = %(job)s
       AND tenant_id = %(tenant)s
       AND state IN ('waiting', 'running')
    RETURNING id
), gone AS (
    DELETE FROM backfilled
     WHERE job = %(job)s
       AND tenant_id = %(tenant)s
)
UPDATE backfills
   SET attempt = attempt + 1, made = 0, began_at = %(now)s, plan = %(plan)s::json
  FROM begun
 WHERE job = begun.id
   AND tenant_id = %(tenant)s
RETURNING attempt;

-- fail --
-- Nothing is left of it but why.
WITH gone AS (
    DELETE FROM backfilled
     WHERE job = %(job)s
       AND tenant_id = %(tenant)s
)
UPDATE jobs
   SET state = 'failed', failures = %(failures)s::json, updated_at = %(now)s
 WHERE id = %(job)s
   AND tenant_id = %(tenant)s
   AND state IN ('waiting', 'running');

-- account --
-- What its computing took, on the account of the stream and of the tenant's hour.
WITH noted AS (
    INSERT INTO usage_hours (tenant_id, hour, service_object, stream, provider_id, processor_us)
    SELECT id, this_hour(), %(service_object)s, %(stream)s, id, %(processor_us)s
      FROM tenants
     WHERE id = %(tenant)s
        ON CONFLICT (tenant_id, hour, service_object, stream, provider_id, grant_id) DO UPDATE
       SET processor_us = usage_hours.processor_us + excluded.processor_us
)
SELECT note_used(%(tenant)s, 0, %(processor_us)s, 0, 0);

-- page --
-- The next updates of a stream: of what is computed anew only what was sent into it. One at least.
SELECT "timestamp", document, log_partition, log_offset, log_position
  FROM (SELECT "timestamp", document::text AS document, log_partition, log_offset, log_position,
               sum(octet_length(document::text)) OVER (ORDER BY "timestamp") AS size,
               row_number() OVER (ORDER BY "timestamp") AS number
          FROM (SELECT *
                  FROM updates
                 WHERE stream_id = %(stream)s
                   AND tenant_id = %(tenant)s
                   AND "timestamp" >= %(after)s
                   AND "timestamp" < %(until)s
                   AND (log_position = 0 OR NOT %(only_sent)s)
                 ORDER BY "timestamp"
                 LIMIT %(rows)s) AS next) AS page
 WHERE size <= %(bytes)s
    OR number = 1
 ORDER BY "timestamp";

-- before --
-- The last update that a stream had before a timestamp.
SELECT "timestamp", document::text, log_partition, log_offset, log_position
  FROM updates
 WHERE stream_id = %(stream)s
   AND tenant_id = %(tenant)s
   AND "timestamp" < %(since)s
 ORDER BY "timestamp" DESC
 LIMIT 1;

-- store --
-- Rows that were computed; nothing where the job is gone, or somebody else computes it.
WITH begun AS (
    SELECT job
      FROM backfills
      JOIN jobs ON jobs.id = job
       AND jobs.tenant_id = backfills.tenant_id
     WHERE job = %(job)s
       AND backfills.tenant_id = %(tenant)s
       AND attempt = %(attempt)s
       AND state = 'running'
       FOR UPDATE
), noted AS (
    UPDATE jobs
       SET done = %(done)s
      FROM begun
     WHERE id = begun.job
       AND tenant_id = %(tenant)s
    RETURNING id
), added AS (
    INSERT INTO backfilled (job, tenant_id, stream_id, "timestamp", version, log_partition,
                            log_offset, log_position, document)
    SELECT noted.id, %(tenant)s, u.stream_id, u."timestamp", u.version, u.log_partition,
           u.log_offset, u.log_position, u.document::json
      FROM noted
     CROSS JOIN unnest(%(streams)s::bigint[], %(timestamps)s::bigint[], %(versions)s::integer[],
                       %(partitions)s::integer[], %(offsets)s::bigint[], %(positions)s::integer[],
                       %(documents)s::text[])
           AS u (stream_id, "timestamp", version, log_partition, log_offset, log_position, document)
        ON CONFLICT (job, stream_id, "timestamp") DO UPDATE
       SET document = excluded.document, version = excluded.version,
           log_partition = excluded.log_partition, log_offset = excluded.log_offset,
           log_position = excluded.log_position
    RETURNING (xmax = 0) AS is_new
), counted AS (
    UPDATE backfills
       SET made = made + (SELECT count(*) FROM added WHERE is_new)
      FROM begun
     WHERE backfills.job = begun.job
       AND tenant_id = %(tenant)s
)
SELECT id
  FROM noted;
