-- updates_of_stream --
-- Everything stored of a stream, oldest first: clients read the last element as the newest.
SELECT document::text, version
  FROM updates
 WHERE stream_id = %(stream)s
 ORDER BY "timestamp";

-- updates_after --
-- One row after the other, so that no more documents are opened than fit, and one. The first
-- comes whatever its size: a reader has to get on.
WITH RECURSIVE page AS (
    (SELECT "timestamp", document::text AS document,
            octet_length(document::text)::bigint AS bytes, 1 AS number
       FROM updates
      WHERE stream_id = %(stream)s
        AND "timestamp" > %(after)s
      ORDER BY "timestamp"
      LIMIT 1)
    UNION ALL
    SELECT following."timestamp", following.document, page.bytes + following.size,
           page.number + 1
      FROM page
     CROSS JOIN LATERAL (
           SELECT "timestamp", document::text AS document, octet_length(document::text) AS size
             FROM updates
            WHERE stream_id = %(stream)s
              AND "timestamp" > page."timestamp"
            ORDER BY "timestamp"
            LIMIT 1) AS following
     WHERE page.number < %(limit)s
       AND page.bytes + following.size <= %(max_bytes)s)
SELECT "timestamp", document
  FROM page
 ORDER BY "timestamp";

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
