-- wait_little --
-- For a lock that others have: they may wait for this one.
SELECT set_config('lock_timeout', %(wait)s, true);

-- swap_alone --
-- One transaction at a time swaps a backfill; the lock ends with it.
SELECT pg_try_advisory_xact_lock(%(key)s, hashtext(%(job)s));

-- swapping --
-- A backfill that is to take its place, unless it was cancelled; and how many rows stand beside.
SELECT jobs.tenant_id, since, until, made,
       ARRAY(SELECT json_array_elements_text(plan -> 'computed')::bigint) AS computed
  FROM jobs
  JOIN backfills ON job = jobs.id
 WHERE jobs.id = %(job)s
   AND state = 'swapping';

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
       END
  FROM backfills
 WHERE job = %(job)s;

-- drop_slice --
-- Of the next updates of a stream in the span those that were computed before history was read: up
-- to which timestamp was looked, none where there are no more, and how many bytes are gone. What
-- was sent into it stays, and so does what has been computed since, by the definitions in force.
WITH before AS MATERIALIZED (
    SELECT log_partition::integer AS partition, next_offset::bigint AS next
      FROM backfills
     CROSS JOIN json_each_text(plan -> 'progress') AS stored (log_partition, next_offset)
     WHERE job = %(job)s
), piece AS MATERIALIZED (
    SELECT "timestamp"
      FROM (SELECT "timestamp", sum(size) OVER (ORDER BY "timestamp") - size AS earlier
              FROM (SELECT "timestamp", pg_column_size(document) AS size
                      FROM updates
                     WHERE stream_id = %(stream)s
                       AND "timestamp" >= %(after)s
                       AND "timestamp" < %(until)s
                     ORDER BY "timestamp"
                     LIMIT %(most)s) AS next) AS summed
     WHERE earlier < %(most_bytes)s
), gone AS (
    DELETE FROM updates
     USING before
     WHERE stream_id = %(stream)s
       AND "timestamp" >= %(after)s
       AND "timestamp" <= (SELECT max("timestamp") FROM piece)
       AND log_position > 0
       AND log_partition = partition
       AND log_offset < next
    RETURNING octet_length(document::text) AS size
)
SELECT (SELECT max("timestamp") FROM piece), (SELECT coalesce(sum(size), 0)::bigint FROM gone);

-- fill_slice --
-- The next of the new rows, beside what has stayed: how many they are, how many bytes came of them,
-- and the last of them; none where there are no more. What was taken back is none: only results of
-- windows can say that, and they say it at their end.
WITH piece AS MATERIALIZED (
    SELECT stream_id, "timestamp"
      FROM (SELECT stream_id, "timestamp",
                   sum(size) OVER (ORDER BY stream_id, "timestamp") - size AS earlier
              FROM (SELECT stream_id, "timestamp", pg_column_size(document) AS size
                      FROM backfilled
                     WHERE job = %(job)s
                       AND (stream_id, "timestamp") > (%(stream)s, %(after)s)
                     ORDER BY stream_id, "timestamp"
                     LIMIT %(most)s) AS next) AS summed
     WHERE earlier < %(most_bytes)s
), added AS (
    INSERT INTO updates (tenant_id, stream_id, "timestamp", document, version, log_partition,
                         log_offset, log_position)
    SELECT tenant_id, stream_id, "timestamp", document, version, log_partition, log_offset,
           log_position
      FROM backfilled
      JOIN piece USING (stream_id, "timestamp")
     WHERE job = %(job)s
       AND right(document::text, 18) <> ',"retracted":true}'
        ON CONFLICT (stream_id, "timestamp") DO NOTHING
    RETURNING octet_length(document::text) AS size
)
SELECT (SELECT count(*) FROM piece), (SELECT coalesce(sum(size), 0)::bigint FROM added),
       last.stream_id, last."timestamp"
  FROM (SELECT) AS always
  LEFT JOIN (SELECT stream_id, "timestamp"
               FROM piece
              ORDER BY stream_id DESC, "timestamp" DESC
              LIMIT 1) AS last ON true;

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

-- end_taken_back_in_span --
-- From here on is computed from what the history has, which is another one in the span.
WITH ended AS (
    SELECT stream_id, octet_length(taken_back::text) AS bytes
      FROM states
     WHERE stream_id = ANY(%(computed)s::bigint[])
       AND tenant_id = %(tenant)s
       AND taken_back_at >= %(since)s
       AND taken_back_at < %(until)s
       FOR UPDATE
), less AS (
    UPDATE stored_amounts
       SET bytes = greatest(0, stored_amounts.bytes - (SELECT sum(bytes) FROM ended))
     WHERE tenant_id = %(tenant)s
       AND EXISTS (SELECT FROM ended)
)
UPDATE states
   SET taken_back_at = NULL, taken_back = NULL
  FROM ended
 WHERE states.stream_id = ended.stream_id
   AND states.tenant_id = %(tenant)s;

-- end_swap --
-- It has taken its place, unless it was cancelled meanwhile.
UPDATE jobs
   SET state = 'done', failures = '[]',
       updated_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint
 WHERE id = %(job)s
   AND state = 'swapping'
RETURNING id;

-- clear_slice --
-- The next of the rows beside, of no use any more: the last of them; no row where there are none.
WITH piece AS MATERIALIZED (
    SELECT stream_id, "timestamp"
      FROM backfilled
     WHERE job = %(job)s
       AND (stream_id, "timestamp") > (%(stream)s, %(after)s)
       AND EXISTS (SELECT FROM jobs WHERE id = %(job)s AND state = %(state)s)
     ORDER BY stream_id, "timestamp"
     LIMIT %(most)s
), gone AS (
    DELETE FROM backfilled
     USING piece
     WHERE job = %(job)s
       AND backfilled.stream_id = piece.stream_id
       AND backfilled."timestamp" = piece."timestamp"
)
SELECT stream_id, "timestamp"
  FROM piece
 ORDER BY stream_id DESC, "timestamp" DESC
 LIMIT 1;

-- in_vain --
-- It is done again, some times.
UPDATE jobs
   SET state = CASE WHEN attempt < %(attempts)s THEN 'waiting' ELSE 'failed' END,
       failures = json_build_array(json_build_object('message', %(why_not)s::text)),
       updated_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint
  FROM backfills
 WHERE id = %(job)s
   AND job = id
   AND state = 'swapping';
