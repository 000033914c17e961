-- buckets --
-- What each bucket of one channel holds. `rows` counts what was read for it; together they are
-- `most` where there is more than may be read. A value of another type than the channel has now
-- is one of an earlier version, and is left out. A text with a NUL (an output's, or one of earlier
-- releases) is read with U+FFFD in its place: the store refuses to look into it.
WITH within AS (
    SELECT "timestamp",
           CASE WHEN strpos(document::text, '\u0000') = 0 THEN document
                ELSE regexp_replace(document::text, '(?<!\\)((?:\\\\)*)\\u0000',
                                    '\1\\ufffd', 'g')::json END
           #> ARRAY['channels', %(channel)s, 'current-value'] AS value
      FROM updates
     WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
       AND tenant_id = %(tenant)s
       AND "timestamp" >= (SELECT kept_from FROM kept_histories WHERE id = %(stream_id)s)
       AND "timestamp" BETWEEN %(from)s AND %(to)s
     ORDER BY "timestamp"
     LIMIT %(most)s
), typed AS (
    SELECT "timestamp", "timestamp" / %(width)s AS bucket,
           json_typeof(value) = ANY (%(types)s::text[]) AS fits,
           CASE WHEN %(number)s AND json_typeof(value) = 'number'
                THEN (value #>> '{}')::float8 END AS number
      FROM within
), buckets AS (
    SELECT bucket, count(*) AS rows, count(*) FILTER (WHERE fits) AS count,
           min(number), max(number), avg(number) AS mean,
           min("timestamp") FILTER (WHERE fits) AS first_at,
           max("timestamp") FILTER (WHERE fits) AS last_at
      FROM typed
     GROUP BY bucket
)
SELECT bucket, rows, count, min, max, mean,
       CASE WHEN %(ends)s THEN (
           SELECT CASE WHEN strpos(document::text, '\u0000') = 0 THEN document
                       ELSE regexp_replace(document::text, '(?<!\\)((?:\\\\)*)\\u0000',
                                           '\1\\ufffd', 'g')::json END
                  #>> ARRAY['channels', %(channel)s, 'current-value']
             FROM updates
            WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
              AND tenant_id = %(tenant)s
              AND "timestamp" = first_at) END AS first,
       CASE WHEN %(ends)s THEN (
           SELECT CASE WHEN strpos(document::text, '\u0000') = 0 THEN document
                       ELSE regexp_replace(document::text, '(?<!\\)((?:\\\\)*)\\u0000',
                                           '\1\\ufffd', 'g')::json END
                  #>> ARRAY['channels', %(channel)s, 'current-value']
             FROM updates
            WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
              AND tenant_id = %(tenant)s
              AND "timestamp" = last_at) END AS last
  FROM buckets
 ORDER BY bucket;

-- ends --
-- The first and the last timestamp within a span.
SELECT min("timestamp"), max("timestamp")
  FROM updates
 WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
   AND tenant_id = %(tenant)s
   AND "timestamp" >= (SELECT kept_from FROM kept_histories WHERE id = %(stream_id)s)
   AND "timestamp" BETWEEN %(from)s AND %(to)s;
