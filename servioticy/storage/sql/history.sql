-- newest --
SELECT max("timestamp")
  FROM updates
 WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
   AND tenant_id = %(tenant)s;

-- page --
-- Of what is still kept: what has expired may not be gone yet. So in all that reads a span.
-- The next updates of a stream, oldest first, as many as fit: row after row, so that one
-- that does not fit any more is not even read, however large it is.
WITH RECURSIVE page AS (
    (SELECT "timestamp", document::text AS document, version,
            octet_length(document::text)::bigint AS bytes, 1 AS rows
       FROM updates
      WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
        AND tenant_id = %(tenant)s
        AND "timestamp" >= (SELECT kept_from FROM kept_histories WHERE id = %(stream_id)s)
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
            WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
              AND tenant_id = %(tenant)s
              AND "timestamp" >= (SELECT kept_from FROM kept_histories WHERE id = %(stream_id)s)
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

-- page_back --
-- The next updates of a stream, newest first, as many as fit: row after row, so that one
-- that does not fit any more is not even read, however large it is.
WITH RECURSIVE page AS (
    (SELECT "timestamp", document::text AS document, version,
            octet_length(document::text)::bigint AS bytes, 1 AS rows
       FROM updates
      WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
        AND tenant_id = %(tenant)s
        AND "timestamp" >= (SELECT kept_from FROM kept_histories WHERE id = %(stream_id)s)
        AND "timestamp" BETWEEN %(from)s AND %(to)s
      ORDER BY "timestamp" DESC
      LIMIT 1)
     UNION ALL
    SELECT next."timestamp", next.document, next.version,
           page.bytes + octet_length(next.document), page.rows + 1
      FROM page
     CROSS JOIN LATERAL (
           SELECT "timestamp", document::text AS document, version
             FROM updates
            WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
              AND tenant_id = %(tenant)s
              AND "timestamp" >= (SELECT kept_from FROM kept_histories WHERE id = %(stream_id)s)
              AND "timestamp" < page."timestamp"
              AND "timestamp" >= %(from)s
            ORDER BY "timestamp" DESC
            LIMIT 1) AS next
     WHERE page.bytes < %(bytes)s
       AND page.rows < %(rows)s
)
SELECT "timestamp", document, version
  FROM page
 ORDER BY "timestamp" DESC;

-- updates_after --
-- One row after the other, so that no more documents are opened than fit, and one. The first
-- comes whatever its size: a reader has to get on.
WITH RECURSIVE page AS (
    (SELECT "timestamp", document::text AS document,
            octet_length(document::text)::bigint AS bytes, 1 AS number
       FROM updates
      WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
        AND tenant_id = %(tenant)s
        AND "timestamp" >= (SELECT kept_from FROM kept_histories WHERE id = %(stream_id)s)
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
            WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
              AND tenant_id = %(tenant)s
              AND "timestamp" >= (SELECT kept_from FROM kept_histories WHERE id = %(stream_id)s)
              AND "timestamp" > page."timestamp"
            ORDER BY "timestamp"
            LIMIT 1) AS following
     WHERE page.number < %(limit)s
       AND page.bytes + following.size <= %(max_bytes)s)
SELECT "timestamp", document
  FROM page
 ORDER BY "timestamp";

-- last_update --
SELECT "timestamp", document::text, version
  FROM updates
 WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
   AND tenant_id = %(tenant)s
 ORDER BY "timestamp" DESC
 LIMIT 1;

-- progress_of --
SELECT next_offset
  FROM progress
 WHERE log_partition = %(partition)s;

-- stored_of --
-- How far a partition is stored, and where the first record of each tenant is that was put off.
SELECT coalesce((SELECT next_offset FROM progress WHERE log_partition = %(partition)s), 0),
       tenant,
       (SELECT min(log_offset)
          FROM put_off
         WHERE log_partition = %(partition)s
           AND tenant_id = tenant
           AND NOT taken_up
           AND NOT held) AS first_put_off
  FROM unnest(%(tenants)s::bigint[]) AS tenant;

-- put_off --
SELECT count(*)
  FROM (SELECT
          FROM put_off
         WHERE log_partition = %(partition)s
           AND tenant_id = %(tenant)s
           AND NOT taken_up
           AND NOT held
         LIMIT %(most)s) AS waiting;

-- held --
-- Records that wait until all has come that another partition sends on.
SELECT count(*)
  FROM (SELECT
          FROM put_off
         WHERE log_partition = %(partition)s
           AND tenant_id = %(tenant)s
           AND held
         LIMIT %(most)s) AS held;

-- inputs_from_outside --
-- What a Service Object reads of other tenants.
SELECT source, stream, is_open, fed_in IS NOT NULL AS has_begun, awaits_at IS NOT NULL AS is_moving,
       (extract(epoch FROM since) * 1000)::bigint
  FROM inputs_from_outside
 WHERE reader = %(id)s
   AND tenant_id = %(tenant)s
 ORDER BY source, stream;

-- kept_of_stream --
SELECT value
  FROM kept_entries
 WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
   AND tenant_id = %(tenant)s
   AND key = %(key)s;

-- verdicts_of_stream --
SELECT verdict, count, last::text
  FROM verdicts
 WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
   AND tenant_id = %(tenant)s
 ORDER BY verdict;

-- processor_time --
SELECT processor_us
  FROM usage
 WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
   AND tenant_id = %(tenant)s;
