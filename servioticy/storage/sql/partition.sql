-- claim --
-- At most one of our locks a connection, however often it is claimed.
SELECT pg_try_advisory_lock(%(key)s, %(partition)s)
 WHERE NOT EXISTS (SELECT FROM pg_locks
                    WHERE locktype = 'advisory' AND pid = pg_backend_pid()
                      AND classid = %(key)s AND objid = %(partition)s)
 UNION ALL
SELECT true
 WHERE EXISTS (SELECT FROM pg_locks
                WHERE locktype = 'advisory' AND pid = pg_backend_pid()
                  AND classid = %(key)s AND objid = %(partition)s)
 LIMIT 1;

-- give_up --
SELECT pg_advisory_unlock(%(key)s, %(partition)s);

-- held --
SELECT objid::integer
  FROM pg_locks
 WHERE locktype = 'advisory'
   AND classid = %(key)s
   AND granted
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- all_progress --
SELECT log_partition, next_offset
  FROM progress;

-- begin_partition --
INSERT INTO progress (log_partition, next_offset, emitted_offset)
VALUES (%(partition)s, 0, 0)
ON CONFLICT DO NOTHING;

-- progress --
SELECT next_offset, emitted_offset
  FROM progress
 WHERE log_partition = %(partition)s;

-- forwarded --
SELECT from_partition, next_offset
  FROM forwarded
 WHERE to_partition = %(partition)s;

-- component --
-- The Service Objects computed together with this one, with the versions in force at the
-- owner's stored progress. No row: it does not exist.
SELECT service_objects.id, service_objects.tenant_id, sequence, owner_partition, active_version,
       deleted_at IS NOT NULL AND active_version IS NULL AS deleted,
       definitions.document::text,
       (SELECT json_object_agg(name, streams.id) FROM streams
         WHERE service_object = service_objects.id)::text AS stream_ids
  FROM service_objects
  LEFT JOIN definitions ON service_object = service_objects.id AND definitions.version = active_version
 WHERE component = (SELECT component FROM service_objects WHERE id = %(service_object)s)
 ORDER BY sequence;

-- owner --
SELECT tenant_id, owner_partition
  FROM service_objects
 WHERE id = %(service_object)s;

-- last_updates --
SELECT stream_id, "timestamp", document::text, uses::text
  FROM last_updates
 WHERE stream_id = ANY(%(streams)s);

-- store --
-- One batch, all or nothing, in one round trip. The progress row is the fence: where it
-- does not stand at the offset the batch began at, another worker has this partition, no
-- row comes back, and nothing is written.
WITH fence AS (
    UPDATE progress
       SET next_offset = %(next_offset)s,
           emitted_offset = greatest(emitted_offset, %(emitted_offset)s)
     WHERE log_partition = %(partition)s
       AND next_offset = %(first_offset)s
    RETURNING next_offset
), stored AS (
    INSERT INTO updates (tenant_id, stream_id, "timestamp", document, version,
                         log_partition, log_offset, log_position)
    SELECT u.tenant_id, u.stream_id, u."timestamp", u.document::json, u.version,
           %(partition)s, u.log_offset, u.log_position
      FROM unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(timestamps)s::bigint[],
                  %(documents)s::text[], %(versions)s::integer[], %(offsets)s::bigint[],
                  %(positions)s::integer[])
           AS u (tenant_id, stream_id, "timestamp", document, version, log_offset, log_position),
           fence
        ON CONFLICT (stream_id, "timestamp") DO UPDATE
       SET document = excluded.document, version = excluded.version,
           log_partition = excluded.log_partition, log_offset = excluded.log_offset,
           log_position = excluded.log_position
), last AS (
    INSERT INTO last_updates (tenant_id, stream_id, "timestamp", document, version, uses)
    SELECT l.tenant_id, l.stream_id, l."timestamp", l.document::json, l.version, l.uses::json
      FROM unnest(%(last_tenants)s::bigint[], %(last_streams)s::bigint[],
                  %(last_timestamps)s::bigint[], %(last_documents)s::text[],
                  %(last_versions)s::integer[], %(last_uses)s::text[])
           AS l (tenant_id, stream_id, "timestamp", document, version, uses),
           fence
        ON CONFLICT (stream_id) DO UPDATE
       SET "timestamp" = excluded."timestamp", document = excluded.document,
           version = excluded.version, uses = excluded.uses
     WHERE last_updates."timestamp" <= excluded."timestamp"
), counted AS (
    INSERT INTO verdicts (tenant_id, stream_id, verdict, count, last)
    SELECT v.tenant_id, v.stream_id, v.verdict, v.count, v.last::json
      FROM unnest(%(verdict_tenants)s::bigint[], %(verdict_streams)s::bigint[],
                  %(verdicts)s::text[], %(verdict_counts)s::bigint[], %(verdict_lasts)s::text[])
           AS v (tenant_id, stream_id, verdict, count, last),
           fence
        ON CONFLICT (stream_id, verdict) DO UPDATE
       SET count = verdicts.count + excluded.count, last = excluded.last
), taken AS (
    INSERT INTO forwarded (to_partition, from_partition, next_offset)
    SELECT %(partition)s, f.from_partition, f.next_offset
      FROM unnest(%(forwarded_from)s::integer[], %(forwarded_next)s::bigint[])
           AS f (from_partition, next_offset),
           fence
        ON CONFLICT (to_partition, from_partition) DO UPDATE
       SET next_offset = excluded.next_offset
), activated AS (
    UPDATE service_objects
       SET active_version = %(active_version)s, active_change = %(active_change)s
      FROM fence
     WHERE id = %(activate)s
       AND (active_change < %(active_change)s OR active_version IS NULL AND active_change = 0)
), released AS (
    UPDATE service_objects
       SET owner_partition = %(release_to)s
      FROM fence
     WHERE id = ANY(%(release)s::text[])
       AND owner_partition = %(partition)s
)
SELECT next_offset
  FROM fence;

-- delete_updates --
-- A Service Object is gone, and with it all that is stored of its streams.
DELETE FROM updates
 USING streams
 WHERE stream_id = streams.id
   AND service_object = %(delete)s;

-- delete_last_updates --
DELETE FROM last_updates
 USING streams
 WHERE stream_id = streams.id
   AND service_object = %(delete)s;

-- delete_verdicts --
DELETE FROM verdicts
 USING streams
 WHERE stream_id = streams.id
   AND service_object = %(delete)s;

-- delete_usage --
DELETE FROM usage
 USING streams
 WHERE stream_id = streams.id
   AND service_object = %(delete)s;

-- delete_streams --
-- Subscriptions to them, and edges from them, go along.
DELETE FROM streams
 WHERE service_object = %(delete)s;

-- delete_edges --
-- What its groups read.
DELETE FROM graph_edges
 WHERE reader = %(delete)s;

-- delete_definitions --
DELETE FROM definitions
 WHERE service_object = %(delete)s;

-- delete_service_object --
-- The row stays: its id is used up. No definition record can put it in force again.
UPDATE service_objects
   SET active_version = NULL, active_change = 9223372036854775807
 WHERE id = %(delete)s;

-- erase --
-- The row comes back where this change is a later one than the stream's last erasure.
UPDATE streams
   SET erased_by = %(change)s
 WHERE service_object = %(service_object)s
   AND name = %(stream)s
   AND (erased_by < %(change)s OR %(change)s = 0)
RETURNING id;

-- erase_updates --
DELETE FROM updates
 WHERE stream_id = %(stream)s;

-- erase_last_update --
DELETE FROM last_updates
 WHERE stream_id = %(stream)s;

-- not_acknowledged --
-- What was stored but perhaps not emitted, in the order it was made; with it what a later
-- update of the same stream and timestamp has displaced.
SELECT streams.service_object, streams.name, made.tenant_id, made.version, "timestamp",
       document::text
  FROM (SELECT stream_id, tenant_id, version, "timestamp", document,
               log_partition, log_offset, log_position
          FROM updates
         UNION ALL
        SELECT stream_id, tenant_id, version, "timestamp", document,
               log_partition, log_offset, log_position
          FROM superseded) AS made
  JOIN streams ON streams.id = stream_id
 WHERE log_partition = %(partition)s
   AND (log_offset >= %(emitted_offset)s AND log_offset < %(next_offset)s
        OR log_offset = ANY(ARRAY(SELECT p.log_offset FROM put_off AS p
                                   WHERE p.log_partition = %(partition)s AND p.taken_up)))
 ORDER BY log_offset, log_position;

-- put_off --
-- Records that their partition computes later than at their place in the log.
INSERT INTO put_off (log_partition, log_offset, tenant_id, service_object, record)
SELECT %(partition)s, p.log_offset, p.tenant_id, p.service_object, p.record
  FROM unnest(%(offsets)s::bigint[], %(tenants)s::bigint[], %(service_objects)s::text[],
              %(records)s::bytea[])
       AS p (log_offset, tenant_id, service_object, record)
    ON CONFLICT DO NOTHING;

-- take_up --
-- They are computed; they stay until all that came of them is emitted.
UPDATE put_off
   SET taken_up = true
 WHERE log_partition = %(partition)s
   AND log_offset = ANY(%(offsets)s::bigint[]);

-- forget_emitted_late --
DELETE FROM put_off
 WHERE log_partition = %(partition)s
   AND log_offset = ANY(%(offsets)s::bigint[])
   AND taken_up;

-- waiting --
SELECT tenant_id, count(*)
  FROM put_off
 WHERE log_partition = %(partition)s
   AND NOT taken_up
 GROUP BY tenant_id;

-- records_put_off --
-- The oldest of a tenant, up to a number and a size; the first whatever its size.
SELECT log_offset, service_object, record
  FROM (SELECT log_offset, service_object, record,
               sum(octet_length(record)) OVER (ORDER BY log_offset) - octet_length(record) AS before
          FROM (SELECT log_offset, service_object, record
                  FROM put_off
                 WHERE log_partition = %(partition)s
                   AND tenant_id = %(tenant)s
                   AND NOT taken_up
                 ORDER BY log_offset
                 LIMIT %(most)s) AS oldest) AS summed
 WHERE before < %(most_bytes)s
 ORDER BY log_offset;

-- taken_up --
SELECT log_offset
  FROM put_off
 WHERE log_partition = %(partition)s
   AND taken_up
 ORDER BY log_offset;

-- forget_superseded --
-- Subscribers have them.
DELETE FROM superseded
 WHERE log_partition = %(partition)s
   AND log_offset < %(emitted_offset)s
   AND NOT EXISTS (SELECT FROM put_off
                    WHERE put_off.log_partition = superseded.log_partition
                      AND put_off.log_offset = superseded.log_offset);

-- set_aside --
-- In the transaction of the batch that displaces them.
INSERT INTO superseded (log_partition, log_offset, log_position, stream_id, tenant_id,
                        "timestamp", document, version)
SELECT %(partition)s, s.log_offset, s.log_position, s.stream_id, s.tenant_id, s."timestamp",
       s.document::json, s.version
  FROM unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(timestamps)s::bigint[],
              %(documents)s::text[], %(versions)s::integer[], %(offsets)s::bigint[],
              %(positions)s::integer[])
       AS s (tenant_id, stream_id, "timestamp", document, version, log_offset, log_position);

-- charge --
-- To streams that are still there.
INSERT INTO usage (tenant_id, stream_id, processor_us)
SELECT c.tenant_id, c.stream_id, c.processor_us
  FROM unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(processor_us)s::bigint[])
       AS c (tenant_id, stream_id, processor_us)
  JOIN streams ON streams.id = c.stream_id
    ON CONFLICT (stream_id) DO UPDATE
   SET processor_us = usage.processor_us + excluded.processor_us;

-- wait_for_the_disk --
-- When this transaction commits; all that was committed before is on it then, too.
SET LOCAL synchronous_commit TO on;

-- touch --
-- A transaction that writes nothing would not wait for the disk.
UPDATE progress
   SET emitted_offset = emitted_offset
 WHERE log_partition = %(partition)s;
