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

-- claimed_by --
SELECT pid
  FROM pg_locks
 WHERE locktype = 'advisory'
   AND classid = %(key)s
   AND objid = %(partition)s
   AND pid = pg_backend_pid()
   AND granted;

-- nobody_beside --
-- Whether no late work is being stored by an earlier claim. The lock goes with the statement.
SELECT pg_try_advisory_xact_lock(%(key)s, %(partition)s);

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
SELECT next_offset, next_tree, emitted_offset
  FROM progress
 WHERE log_partition = %(partition)s;

-- forwarded --
SELECT from_partition, next_offset
  FROM forwarded
 WHERE to_partition = %(partition)s;

-- component --
-- The Service Objects computed together with this one, with the versions in force at the
-- owner's stored progress. No row: it does not exist.
SELECT id, service_objects.tenant_id, owner_partition, active_version,
       deleted_at IS NOT NULL AND active_version IS NULL AS deleted, coalesce(bytes, 0)
  FROM service_objects
  LEFT JOIN definitions ON service_object = id
   AND definitions.version = active_version
   AND definitions.tenant_id = service_objects.tenant_id
 WHERE component = (SELECT component FROM service_objects WHERE id = %(service_object)s)
 ORDER BY sequence;

-- components --
-- The same for many at once: whole components, each member with the component that it is of. Here
-- and below each is looked up by itself (OFFSET 0): a plan that reads a table through costs, with
-- each batch, what the whole fleet has.
SELECT component, id, tenant_id, owner_partition, active_version, deleted, coalesce(bytes, 0)
  FROM (SELECT DISTINCT component AS wanted
          FROM unnest(%(ids)s::text[]) AS asked (service_object)
         CROSS JOIN LATERAL (
               SELECT component
                 FROM service_objects
                WHERE id = asked.service_object
               OFFSET 0) AS found) AS found
 CROSS JOIN LATERAL (
       SELECT component, id, tenant_id, owner_partition, active_version, sequence,
              deleted_at IS NOT NULL AND active_version IS NULL AS deleted
         FROM service_objects
        WHERE component = wanted
       OFFSET 0) AS members
  LEFT JOIN LATERAL (
       SELECT bytes
         FROM definitions
        WHERE service_object = members.id
          AND version = active_version
          AND tenant_id = members.tenant_id
       OFFSET 0) AS definition ON true
 ORDER BY component, sequence;

-- service_objects --
-- The documents in force of these Service Objects, and the grants by which others read them.
SELECT found.id, found.tenant_id, sequence, active_version, document::text, operator_owners,
       (SELECT json_agg(json_build_array(grants.id, grantee, stream, derived_only))
          FROM grants
         WHERE grants.service_object = found.id
           AND grants.tenant_id = found.tenant_id
           AND active)
  FROM unnest(%(ids)s::text[]) AS asked (id)
 CROSS JOIN LATERAL (
       SELECT id, tenant_id, sequence, active_version
         FROM service_objects
        WHERE id = asked.id
       OFFSET 0) AS found
 CROSS JOIN LATERAL (
       SELECT document, operator_owners
         FROM definitions
        WHERE service_object = found.id
          AND version = active_version
       OFFSET 0) AS definition
 ORDER BY sequence;

-- changed --
-- The same as changes make them that have not been made yet: of the first ones, as many as fit.
WITH made AS (
    SELECT asked.id, asked.version, asked.number,
           sum(bytes) OVER (ORDER BY asked.number) AS bytes
      FROM unnest(%(service_objects)s::text[], %(versions)s::integer[], %(changes)s::bigint[])
           WITH ORDINALITY AS asked (id, version, change, number)
      JOIN service_objects ON service_objects.id = asked.id
       AND active_change < asked.change
      JOIN definitions ON service_object = asked.id
       AND definitions.version = asked.version
       AND definitions.tenant_id = service_objects.tenant_id
)
SELECT service_objects.id, service_objects.tenant_id, sequence, definitions.version,
       definitions.document::text, operator_owners,
       (SELECT json_agg(json_build_array(grants.id, grantee, stream, derived_only))
          FROM grants
         WHERE grants.service_object = service_objects.id
           AND grants.tenant_id = service_objects.tenant_id
           AND active)
  FROM made
  JOIN service_objects ON service_objects.id = made.id
  JOIN definitions ON service_object = made.id
   AND definitions.version = made.version
   AND definitions.tenant_id = service_objects.tenant_id
 WHERE made.bytes <= %(most_bytes)s
 ORDER BY made.number;

-- stored_as --
-- Under which numbers the updates of these streams of Service Objects are stored. Not of all that
-- they have: each of their versions may have declared others.
SELECT asked.service_object, asked.name, stored_as
  FROM unnest(%(service_objects)s::text[], %(tenants)s::bigint[], %(names)s::text[])
       AS asked (service_object, tenant_id, name)
 CROSS JOIN LATERAL (
       SELECT stored_as
         FROM streams
        WHERE service_object = asked.service_object
          AND tenant_id = asked.tenant_id
          AND name = asked.name
       OFFSET 0) AS found;

-- grant --
SELECT id, grantee, stream, derived_only
  FROM grants
 WHERE id = %(grant)s;

-- owner --
SELECT tenant_id, owner_partition
  FROM service_objects
 WHERE id = %(service_object)s;

-- owners --
SELECT id, tenant_id, owner_partition
  FROM service_objects
 WHERE id = ANY(%(ids)s::text[]);

-- erases --
-- Whether an erasure is a later one than the stream's last (effects.sql, erase).
SELECT FROM streams
 WHERE service_object = %(service_object)s
   AND name = %(stream)s
   AND (erased_by < %(change)s OR %(change)s = 0);

-- last_updates --
-- The primary key of updates finds each of them at the end of its stream. Where one that was taken
-- back is newer, it is that from which is computed.
SELECT asked.stream_id, last."timestamp", last.document::text, state
  FROM unnest(%(streams)s::bigint[]) AS asked (stream_id)
  LEFT JOIN states ON states.stream_id = asked.stream_id
 CROSS JOIN LATERAL (
       SELECT "timestamp", document
         FROM ((SELECT "timestamp", document, 0 AS place
                  FROM updates
                 WHERE stream_id = asked.stream_id
                 ORDER BY "timestamp" DESC
                 LIMIT 1)
                UNION ALL
               SELECT taken_back_at, taken_back, 1
                WHERE taken_back_at IS NOT NULL) AS either
        ORDER BY "timestamp" DESC, place
        LIMIT 1) AS last;

-- fence --
-- Where progress does not stand at the offset the batch began at, another worker has this
-- partition: then 1 is divided by 0, and nothing that is sent together with this is done.
WITH fence AS (
    UPDATE progress
       SET next_offset = %(next_offset)s,
           next_tree = %(next_tree)s,
           emitted_offset = greatest(emitted_offset, %(emitted_offset)s)
     WHERE log_partition = %(partition)s
       AND next_offset = %(first_offset)s
       AND next_tree = %(first_tree)s
    RETURNING next_offset
)
SELECT 1 / count(*)
  FROM fence;

-- store_beside --
-- Whoever begins the partition waits for this transaction, or comes before it: then the fence
-- that follows finds its claim. Several of one claim are nobody to each other.
SELECT pg_advisory_xact_lock_shared(%(key)s, %(partition)s);

-- fence_beside --
-- Where the partition is claimed by another connection 1 is divided by 0, as above.
SELECT 1 / count(*)
  FROM pg_locks
 WHERE locktype = 'advisory'
   AND classid = %(key)s
   AND objid = %(partition)s
   AND pid = %(claim)s
   AND granted
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- copy_updates --
-- Updates that are certainly not there yet: into the partition of the table that has no policies,
-- as COPY needs.
COPY stored_updates (tenant_id, stream_id, "timestamp", version, log_partition, log_offset,
              log_position, document)
FROM STDIN (FORMAT binary);

-- store_updates --
-- The same stream and timestamp again overwrites.
INSERT INTO updates (tenant_id, stream_id, "timestamp", document, version,
                     log_partition, log_offset, log_position)
SELECT u.tenant_id, u.stream_id, u."timestamp", u.document::json, u.version,
       %(partition)s, u.log_offset, u.log_position
  FROM unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(timestamps)s::bigint[],
              %(documents)s::text[], %(versions)s::integer[], %(offsets)s::bigint[],
              %(positions)s::integer[])
       AS u (tenant_id, stream_id, "timestamp", document, version, log_offset, log_position)
    ON CONFLICT (stream_id, "timestamp") DO UPDATE
   SET document = excluded.document, version = excluded.version,
       log_partition = excluded.log_partition, log_offset = excluded.log_offset,
       log_position = excluded.log_position;

-- take_back --
-- What is no result of its stream any more.
DELETE FROM updates
 USING unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(timestamps)s::bigint[])
       AS back (tenant_id, stream_id, "timestamp")
 WHERE updates.stream_id = back.stream_id
   AND updates.tenant_id = back.tenant_id
   AND updates."timestamp" = back."timestamp";

-- end_taken_back --
-- A result as new is there: nobody computes from what was taken back any more.
UPDATE states
   SET taken_back_at = NULL, taken_back = NULL
  FROM unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(timestamps)s::bigint[])
       AS newer (tenant_id, stream_id, "timestamp")
 WHERE states.stream_id = newer.stream_id
   AND states.tenant_id = newer.tenant_id
   AND taken_back_at <= newer."timestamp";

-- keep_taken_back --
-- Of a stream one: from it is computed as long as nothing newer comes.
INSERT INTO states (tenant_id, stream_id, taken_back_at, taken_back)
SELECT back.tenant_id, back.stream_id, back."timestamp", back.document::json
  FROM unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(timestamps)s::bigint[],
              %(documents)s::text[])
       AS back (tenant_id, stream_id, "timestamp", document)
 WHERE NOT EXISTS (SELECT FROM updates
                    WHERE updates.stream_id = back.stream_id
                      AND updates.tenant_id = back.tenant_id
                      AND updates."timestamp" > back."timestamp")
    ON CONFLICT (stream_id) DO UPDATE
   SET taken_back_at = excluded.taken_back_at, taken_back = excluded.taken_back
 WHERE coalesce(states.taken_back_at <= excluded.taken_back_at, true);

-- note_late --
-- Updates that are late, perhaps: whoever makes blocks of their streams just now begins anew.
UPDATE searched_streams
   SET changes = changes + 1
 WHERE stream_id = ANY(%(streams)s::bigint[]);

-- drop_blocks --
-- Of searched streams, what would have to hold these updates. A statement of its own: so it sees
-- blocks of who held the row that the one before it had to wait for.
DELETE FROM search_blocks
 WHERE id IN (SELECT found.id
                FROM unnest(%(streams)s::bigint[], %(timestamps)s::bigint[])
                     AS late (stream_id, "timestamp")
               CROSS JOIN LATERAL (
                     SELECT id, after
                       FROM search_blocks
                      WHERE stream_id = late.stream_id
                        AND upto >= late."timestamp"
                      ORDER BY upto
                      LIMIT 1) AS found
               WHERE found.after < late."timestamp");

-- store_states --
INSERT INTO states (tenant_id, stream_id, state)
SELECT s.tenant_id, s.stream_id, s.state
  FROM unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(states)s::bytea[])
       AS s (tenant_id, stream_id, state)
    ON CONFLICT (stream_id) DO UPDATE
   SET state = excluded.state;

-- count_verdicts --
INSERT INTO verdicts (tenant_id, stream_id, verdict, count, last)
SELECT v.tenant_id, v.stream_id, v.verdict, v.count, v.last::json
  FROM unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(verdicts)s::text[],
              %(counts)s::bigint[], %(lasts)s::text[])
       AS v (tenant_id, stream_id, verdict, count, last)
    ON CONFLICT (stream_id, verdict) DO UPDATE
   SET count = verdicts.count + excluded.count, last = excluded.last;

-- note_forwarded --
INSERT INTO forwarded (to_partition, from_partition, next_offset)
SELECT %(partition)s, f.from_partition, f.next_offset
  FROM unnest(%(from)s::integer[], %(next)s::bigint[]) AS f (from_partition, next_offset)
    ON CONFLICT (to_partition, from_partition) DO UPDATE
   SET next_offset = excluded.next_offset;

-- not_acknowledged --
-- What was stored but perhaps not emitted, in the order it was made; with it what a later
-- update of the same stream and timestamp has displaced. Where a record grows trees for several
-- tenants, all that a tree makes is its tenant's.
SELECT service_object, name, made.tenant_id, made.version, "timestamp",
       document::text
  FROM (SELECT stream_id, tenant_id, version, "timestamp", document,
               log_partition, log_offset, log_position
          FROM updates
         UNION ALL
        SELECT stream_id, tenant_id, version, "timestamp", document,
               log_partition, log_offset, log_position
          FROM superseded) AS made
  JOIN readable_streams ON stored_as = stream_id
 WHERE log_partition = %(partition)s
   AND (log_offset >= %(emitted_offset)s AND log_offset <= %(next_offset)s
        OR log_offset = ANY(ARRAY(SELECT p.log_offset FROM put_off AS p
                                   WHERE p.log_partition = %(partition)s AND p.taken_up))
           AND EXISTS (SELECT FROM put_off AS p
                        WHERE p.log_partition = %(partition)s
                          AND p.log_offset = made.log_offset
                          AND p.taken_up
                          AND (p.tree = 0 OR p.tenant_id = made.tenant_id)))
 ORDER BY log_offset, made.tenant_id, log_position;

-- left_to_do --
-- Where there is something to do though no records come.
SELECT log_partition FROM purge
 UNION
SELECT log_partition FROM kept_entries WHERE due <= %(now)s;

-- forget_superseded --
-- Subscribers have them.
DELETE FROM superseded
 WHERE log_partition = %(partition)s
   AND log_offset < %(emitted_offset)s
   AND NOT EXISTS (SELECT FROM put_off
                    WHERE put_off.log_partition = superseded.log_partition
                      AND put_off.log_offset = superseded.log_offset
                      AND put_off.tree IN (0, superseded.tree));

-- set_aside --
-- In the transaction of the batch that displaces them.
INSERT INTO superseded (log_partition, log_offset, log_position, stream_id, tenant_id,
                        "timestamp", document, version, tree)
SELECT %(partition)s, s.log_offset, s.log_position, s.stream_id, s.tenant_id, s."timestamp",
       s.document::json, s.version, s.tree
  FROM unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(timestamps)s::bigint[],
              %(documents)s::text[], %(versions)s::integer[], %(offsets)s::bigint[],
              %(positions)s::integer[], %(trees)s::bigint[])
       AS s (tenant_id, stream_id, "timestamp", document, version, log_offset, log_position, tree);

-- used_up --
-- Who has used up the quota of computations or of processor time of this hour, or of what is
-- stored, and which.
SELECT used_amounts.tenant_id,
       CASE WHEN used_amounts.computations >= coalesce(own.computations, %(computations)s)
            THEN 'computations' ELSE 'processor-seconds' END
  FROM used_amounts
 CROSS JOIN LATERAL (
       SELECT max(most) FILTER (WHERE name = 'computations') AS computations,
              max(most) FILTER (WHERE name = 'processor-seconds') AS seconds
         FROM quotas
        WHERE quotas.tenant_id = used_amounts.tenant_id) AS own
 WHERE hour = this_hour()
   AND (used_amounts.computations >= coalesce(own.computations, %(computations)s)
        OR processor_us >= coalesce(own.seconds, %(processor_seconds)s) * 1000000)
 UNION ALL
SELECT tenant_id, name
  FROM quotas
 WHERE name IN ('computations', 'processor-seconds', 'stored-bytes')
   AND most = 0
 UNION ALL
SELECT stored_amounts.tenant_id, 'stored-bytes'
  FROM stored_amounts
  LEFT JOIN quotas ON quotas.tenant_id = stored_amounts.tenant_id
   AND name = 'stored-bytes'
 WHERE bytes >= coalesce(most, %(stored_bytes)s);

-- wait_for_the_disk --
-- When this transaction commits; all that was committed before is on it then, too.
SET LOCAL synchronous_commit TO on;

-- touch --
-- A transaction that writes nothing would not wait for the disk.
UPDATE progress
   SET emitted_offset = emitted_offset
 WHERE log_partition = %(partition)s;
