-- activate --
-- A version is in force, unless a later change has been made already.
UPDATE service_objects
   SET active_version = %(version)s, active_change = %(change)s
 WHERE id = %(service_object)s
   AND (active_change < %(change)s OR active_version IS NULL AND active_change = 0)
RETURNING tenant_id;

-- activate_all --
-- The same of many.
UPDATE service_objects
   SET active_version = made.version, active_change = made.change
  FROM unnest(%(service_objects)s::text[], %(versions)s::integer[], %(changes)s::bigint[])
       AS made (id, version, change)
 WHERE service_objects.id = made.id
   AND (active_change < made.change OR active_version IS NULL AND active_change = 0);

-- allow --
UPDATE grants
   SET active = true
 WHERE id = %(grant)s;

-- revoke --
DELETE FROM grants
 WHERE id = %(grant)s;

-- release --
-- From here on another partition computes these Service Objects, and wakes them.
WITH moved AS (
    UPDATE service_objects
       SET owner_partition = %(to_partition)s
     WHERE id = ANY(%(service_objects)s::text[])
       AND owner_partition = %(partition)s
    RETURNING tenant_id, id
)
UPDATE kept_entries
   SET log_partition = %(to_partition)s
  FROM moved
  JOIN streams ON streams.service_object = moved.id
              AND streams.tenant_id = moved.tenant_id
 WHERE kept_entries.stream_id = streams.stored_as
   AND kept_entries.tenant_id = streams.tenant_id
   AND due IS NOT NULL;

-- delete --
-- A Service Object is gone, and nothing of its streams can be read any more; what is stored is
-- left to be removed. The row stays: its id is used up, and no definition record can put it in
-- force again. It leaves its component, which else would be ever longer to load.
WITH gone AS (
    UPDATE service_objects
       SET active_version = NULL, active_change = 9223372036854775807,
           component = 'deleted ' || id
     WHERE id = %(service_object)s
    RETURNING id, tenant_id
), ended AS (
    DELETE FROM grants
     USING gone
     WHERE grants.service_object = gone.id
       AND grants.tenant_id = gone.tenant_id
), left_behind AS (
    INSERT INTO purge (log_partition, tenant_id, service_object)
    SELECT %(partition)s, tenant_id, id
      FROM gone
        ON CONFLICT DO NOTHING
)
SELECT tenant_id
  FROM gone;

-- erase --
-- Where this change is a later one than the stream's last erasure: what comes is stored under
-- another number, verdicts and usage with it, and what there was is left to be removed.
WITH before AS (
    SELECT id, stored_as
      FROM streams
     WHERE service_object = %(service_object)s
       AND name = %(stream)s
       AND (erased_by < %(change)s OR %(change)s = 0)
       FOR UPDATE
), renumbered AS (
    UPDATE streams
       SET erased_by = %(change)s,
           after_erasure = nextval(pg_get_serial_sequence('streams', 'id'))
      FROM before
     WHERE streams.id = before.id
    RETURNING tenant_id, before.stored_as AS old, streams.stored_as AS new
), state AS (
    DELETE FROM states
     USING renumbered
     WHERE stream_id = old
), counted AS (
    UPDATE verdicts
       SET stream_id = new
      FROM renumbered
     WHERE stream_id = old
), used AS (
    UPDATE usage
       SET stream_id = new
      FROM renumbered
     WHERE stream_id = old
)
INSERT INTO purge (log_partition, tenant_id, stored_as)
SELECT %(partition)s, tenant_id, old
  FROM renumbered;

-- filling --
-- A backfill that is to take its place, unless it was cancelled.
SELECT jobs.tenant_id, since, until,
       ARRAY(SELECT json_array_elements_text(plan -> 'computed')::bigint) AS computed
  FROM jobs
  JOIN backfills ON job = jobs.id
 WHERE jobs.id = %(job)s
   AND state = 'swapping'
   FOR UPDATE OF jobs;

-- why_not --
-- What has become another one since history was read: a definition, or what a stream is stored as.
-- What came into the span since then the definitions in force have computed.
SELECT CASE
       WHEN EXISTS (SELECT FROM json_each_text(plan -> 'objects') AS named (id, change)
                     WHERE NOT EXISTS (SELECT FROM service_objects
                                        WHERE service_objects.id = named.id
                                          AND active_change = named.change::bigint))
       THEN 'a Service Object was changed meanwhile'
       WHEN EXISTS (SELECT FROM (SELECT json_array_elements_text(plan -> 'computed') AS number
                                  UNION ALL
                                 SELECT json_array_elements_text(plan -> 'read')) AS named
                     WHERE NOT EXISTS (SELECT FROM streams WHERE stored_as = number::bigint))
       THEN 'a stream was erased meanwhile'
       WHEN made <> (SELECT count(*) FROM backfilled WHERE job = %(job)s)
       THEN 'what was computed is gone meanwhile'
       END
  FROM backfills
 WHERE job = %(job)s;

-- drop_filled --
-- What was computed in the span before history was read: how many bytes. What was sent into it
-- stays, and so does what has been computed since, by the definitions in force.
WITH before AS MATERIALIZED (
    SELECT log_partition::integer AS partition, next_offset::bigint AS next
      FROM backfills
     CROSS JOIN json_each_text(plan -> 'progress') AS stored (log_partition, next_offset)
     WHERE job = %(job)s
), gone AS (
    DELETE FROM updates
     USING before
     WHERE stream_id = ANY(%(computed)s::bigint[])
       AND "timestamp" >= %(since)s
       AND "timestamp" < %(until)s
       AND log_position > 0
       AND log_partition = partition
       AND log_offset < next
    RETURNING octet_length(document::text) AS size
)
SELECT coalesce(sum(size), 0)
  FROM gone;

-- fill --
-- Beside what has stayed: how many bytes.
WITH added AS (
    INSERT INTO updates (tenant_id, stream_id, "timestamp", document, version, log_partition,
                         log_offset, log_position)
    SELECT tenant_id, stream_id, "timestamp", document, version, log_partition, log_offset,
           log_position
      FROM backfilled
     WHERE job = %(job)s
        ON CONFLICT (stream_id, "timestamp") DO NOTHING
    RETURNING octet_length(document::text) AS size
)
SELECT coalesce(sum(size), 0)
  FROM added;

-- amount_filled --
-- How many bytes of updates are stored more, or less.
INSERT INTO stored_amounts (tenant_id, bytes)
SELECT %(tenant)s, greatest(0, %(bytes)s)
    ON CONFLICT (tenant_id) DO UPDATE
   SET bytes = greatest(0, stored_amounts.bytes + %(bytes)s);

-- note_filled --
-- Whoever makes blocks of searched streams just now begins anew.
UPDATE searched_streams
   SET changes = changes + 1
 WHERE stream_id = ANY(%(computed)s::bigint[]);

-- drop_filled_blocks --
DELETE FROM search_blocks
 WHERE stream_id = ANY(%(computed)s::bigint[])
   AND upto >= %(since)s
   AND after < %(until)s;

-- end_filling --
-- What was computed beside goes, whatever became of it. What was in vain is done again, some times.
WITH gone AS (
    DELETE FROM backfilled
     WHERE job = %(job)s
)
UPDATE jobs
   SET state = CASE WHEN %(why_not)s::text IS NULL THEN 'done'
                    WHEN attempt < %(attempts)s THEN 'waiting'
                    ELSE 'failed' END,
       failures = CASE WHEN %(why_not)s::text IS NULL THEN '[]'
                       ELSE json_build_array(json_build_object('message', %(why_not)s::text)) END,
       updated_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint
  FROM backfills
 WHERE id = %(job)s
   AND job = id;
