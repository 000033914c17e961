-- keep_for --
INSERT INTO retention (seconds)
VALUES (%(seconds)s)
    ON CONFLICT (is_it) DO UPDATE
   SET seconds = excluded.seconds;

-- forgetful --
-- The next tenants of whom something may expire, those of one partition's turn: each tenant is of
-- one partition, whatever partitions compute its streams. Rows that are old are touched by nobody
-- else, or by one who waits.
SELECT id
  FROM tenants
  LEFT JOIN retention ON true
 WHERE id > %(after)s
   AND mod(id, greatest(1, (SELECT count(*) FROM progress))) = %(partition)s
   AND (seconds IS NOT NULL
        OR EXISTS (SELECT FROM streams WHERE tenant_id = tenants.id AND kept_seconds > 0))
 ORDER BY id
 LIMIT %(most)s;

-- expire --
-- Of the next streams of a tenant the oldest updates that have expired, up to a number and a size;
-- the first whatever its size. A stream's last update stays: composites compute by it, and of what
-- was taken back what is no older. So does what is perhaps not emitted yet, as it would be emitted
-- again from here, and what somebody overwrites just now.
WITH looked AS MATERIALIZED (
    SELECT id, stored_as, kept_seconds
      FROM streams
     WHERE tenant_id = %(tenant)s
       AND id > %(after)s
     ORDER BY id
     LIMIT %(streams)s
), ends AS MATERIALIZED (
    SELECT stored_as, least(newest."timestamp", kept_from(
               newest."timestamp", coalesce(kept_seconds, seconds))) AS kept_from
      FROM looked
      LEFT JOIN retention ON true
     CROSS JOIN LATERAL (
           SELECT "timestamp"
             FROM updates
            WHERE stream_id = stored_as
              AND tenant_id = %(tenant)s
            ORDER BY "timestamp" DESC
            LIMIT 1) AS newest
     WHERE coalesce(kept_seconds, seconds, -1) > 0
), expired AS MATERIALIZED (
    SELECT stored_as, "timestamp", size
      FROM ends
     CROSS JOIN LATERAL (
           SELECT "timestamp", pg_column_size(document) AS size
             FROM updates
            WHERE stream_id = stored_as
              AND updates.tenant_id = %(tenant)s
              AND "timestamp" < kept_from
              AND NOT EXISTS (SELECT FROM progress
                               WHERE progress.log_partition = updates.log_partition
                                 AND emitted_offset <= log_offset)
              AND NOT EXISTS (SELECT FROM put_off
                               WHERE put_off.log_partition = updates.log_partition
                                 AND put_off.tenant_id = updates.tenant_id
                                 AND put_off.log_offset = updates.log_offset)
            ORDER BY "timestamp"
            LIMIT %(most)s
              FOR UPDATE SKIP LOCKED) AS oldest
     LIMIT %(most)s
), ended AS MATERIALIZED (
    SELECT stream_id, octet_length(taken_back::text) AS bytes
      FROM ends
      JOIN states ON stream_id = stored_as
     WHERE states.tenant_id = %(tenant)s
       AND taken_back_at < kept_from
       FOR UPDATE OF states SKIP LOCKED
), no_longer AS (
    UPDATE states
       SET taken_back_at = NULL, taken_back = NULL
      FROM ended
     WHERE states.stream_id = ended.stream_id
       AND states.tenant_id = %(tenant)s
), piece AS (
    SELECT stored_as, "timestamp"
      FROM (SELECT stored_as, "timestamp",
                   sum(size) OVER (ORDER BY stored_as, "timestamp") - size AS before
              FROM expired) AS summed
     WHERE before < %(most_bytes)s
), gone AS (
    DELETE FROM updates
     USING piece
     WHERE stream_id = stored_as
       AND updates.tenant_id = %(tenant)s
       AND updates."timestamp" = piece."timestamp"
    RETURNING stream_id, updates."timestamp", octet_length(document::text) AS bytes
), less AS (
    UPDATE stored_amounts
       SET bytes = greatest(0, stored_amounts.bytes - (
               SELECT sum(bytes)
                 FROM (SELECT bytes FROM gone
                        UNION ALL
                       SELECT bytes FROM ended) AS lost))
     WHERE tenant_id = %(tenant)s
       AND (EXISTS (SELECT FROM gone) OR EXISTS (SELECT FROM ended))
)
SELECT (SELECT max(id) FROM looked), stream_id, removed, bytes, first, last
  FROM (SELECT) AS always
  LEFT JOIN (SELECT stream_id, count(*) AS removed, sum(bytes) AS bytes,
                    min("timestamp") AS first, max("timestamp") AS last
               FROM gone
              GROUP BY stream_id) AS counted ON true;

-- note_expired --
-- Whoever makes blocks of their streams just now begins anew.
UPDATE searched_streams
   SET changes = changes + 1
 WHERE stream_id = ANY(%(stored_as)s::bigint[])
   AND tenant_id = %(tenant)s;

-- drop_expired_blocks --
-- Of searched streams, what has these updates. A statement of its own, as drop_blocks is.
DELETE FROM search_blocks
 USING unnest(%(stored_as)s::bigint[], %(firsts)s::bigint[], %(lasts)s::bigint[])
       AS gone (stored_as, first, last)
 WHERE stream_id = stored_as
   AND tenant_id = %(tenant)s
   AND upto >= first
   AND after < last;
