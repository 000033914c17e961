-- newest --
SELECT max("timestamp")
  FROM updates
 WHERE stream_id = %(stream)s;

-- page --
-- The next updates of a stream, oldest first, as many as fit: row after row, so that one
-- that does not fit any more is not even read, however large it is.
WITH RECURSIVE page AS (
    (SELECT "timestamp", document::text AS document, version,
            octet_length(document::text)::bigint AS bytes, 1 AS rows
       FROM updates
      WHERE stream_id = %(stream)s
        AND "timestamp" BETWEEN %(from)s AND %(to)s
      ORDER BY "timestamp"
      LIMIT 1)
     UNION ALL
    SELECT next."timestamp", next.document, next.version,
           page.bytes + octet_length(next.document), page.rows + 1
      FROM page
     CROSS JOIN LATERAL (
           SELECT "timestamp", document::text AS document, version
             FROM updates
            WHERE stream_id = %(stream)s
              AND "timestamp" > page."timestamp"
              AND "timestamp" <= %(to)s
            ORDER BY "timestamp"
            LIMIT 1) AS next
     WHERE page.bytes < %(bytes)s
       AND page.rows < %(rows)s
)
SELECT "timestamp", document, version
  FROM page
 ORDER BY "timestamp";

-- updates_after --
SELECT "timestamp", document::text
  FROM updates
 WHERE stream_id = %(stream)s
   AND "timestamp" > %(after)s
 ORDER BY "timestamp"
 LIMIT %(limit)s;

-- last_update --
SELECT document::text, version
  FROM last_updates
 WHERE stream_id = %(stream)s;

-- progress_of --
SELECT next_offset
  FROM progress
 WHERE log_partition = %(partition)s;

-- verdicts_of_stream --
SELECT verdict, count, last::text
  FROM verdicts
 WHERE stream_id = %(stream)s
 ORDER BY verdict;

-- processor_time --
SELECT processor_us
  FROM usage
 WHERE stream_id = %(stream)s;
