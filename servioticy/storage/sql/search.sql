-- begin --
-- Somebody searches the stream: it may have blocks from now on.
INSERT INTO searched_streams (stream_id, tenant_id)
SELECT stored_as, tenant_id
  FROM readable_streams
 WHERE id = %(stream_id)s
   AND tenant_id = %(tenant)s
    ON CONFLICT DO NOTHING;

-- searched --
-- Under which number the stream is stored, and how often its blocks have changed.
SELECT stream_id, changes
  FROM searched_streams
 WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
   AND tenant_id = %(tenant)s;

-- blocks --
-- The next blocks within a span of time.
SELECT id, after, upto
  FROM search_blocks
 WHERE stream_id = %(number)s
   AND tenant_id = %(tenant)s
   AND upto >= %(first)s
   AND after < %(last)s
 ORDER BY upto
 LIMIT %(most)s;

-- bounds --
SELECT block_id, subject, bounds
  FROM search_columns
 WHERE block_id = ANY(%(blocks)s::bigint[])
   AND subject = ANY(%(subjects)s::text[])
   AND tenant_id = %(tenant)s;

-- columns --
SELECT block_id, subject, codes
  FROM search_columns
 WHERE block_id = ANY(%(blocks)s::bigint[])
   AND subject = ANY(%(subjects)s::text[])
   AND tenant_id = %(tenant)s;

-- timestamps --
SELECT id, timestamps
  FROM search_blocks
 WHERE id = ANY(%(blocks)s::bigint[])
   AND tenant_id = %(tenant)s;

-- add_block --
-- Unless anything has changed since the number of changes was read: an update that came late may
-- be missing, or somebody else has made a block of the same updates.
WITH stream AS (
    UPDATE searched_streams
       SET changes = changes + 1
     WHERE stream_id = %(number)s
       AND tenant_id = %(tenant)s
       AND changes = %(changes)s
    RETURNING stream_id, tenant_id, changes
), block AS (
    INSERT INTO search_blocks (stream_id, tenant_id, after, upto, timestamps)
    SELECT stream_id, tenant_id, %(after)s, %(upto)s, %(timestamps)s
      FROM stream
    RETURNING id, tenant_id
), filled AS (
    INSERT INTO search_columns (block_id, tenant_id, subject, bounds, codes)
    SELECT block.id, block.tenant_id, c.subject, c.bounds::double precision[], c.codes
      FROM block
     CROSS JOIN unnest(%(subjects)s::text[], %(bounds)s::text[], %(codes)s::bytea[])
           AS c (subject, bounds, codes)
)
SELECT changes
  FROM stream;

-- add_columns --
-- To a block that is still there: then no update has come into it meanwhile.
INSERT INTO search_columns (block_id, tenant_id, subject, bounds, codes)
SELECT b.id, b.tenant_id, c.subject, c.bounds::double precision[], c.codes
  FROM (SELECT id, tenant_id
          FROM search_blocks
         WHERE id = %(block)s
           AND tenant_id = %(tenant)s
           FOR KEY SHARE) AS b
 CROSS JOIN unnest(%(subjects)s::text[], %(bounds)s::text[], %(codes)s::bytea[])
       AS c (subject, bounds, codes)
    ON CONFLICT DO NOTHING;

-- small_updates --
-- The next updates of a span, before the first that is large: what is neither compressed nor of
-- more bytes than these is as large as it is stored, which is known without opening it.
WITH next AS MATERIALIZED (
    SELECT "timestamp", document, version,
           pg_column_compression(document) IS NOT NULL OR pg_column_size(document) > %(large)s
           AS is_large
      FROM updates
     WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
       AND tenant_id = %(tenant)s
       AND "timestamp" >= (SELECT kept_from FROM kept_histories WHERE id = %(stream_id)s)
       AND "timestamp" BETWEEN %(first)s AND %(last)s
     ORDER BY "timestamp"
     LIMIT %(rows)s
)
SELECT "timestamp", document::text, version
  FROM next
 WHERE "timestamp" < coalesce((SELECT min("timestamp") FROM next WHERE is_large),
                              9223372036854775807)
 ORDER BY "timestamp";

-- updates --
-- Those of the timestamps that are stored, in their order, until one reaches the size; how far
-- that is, says the number of the last row. One row after the other, so that none is read that
-- does not fit. What is next is a column: below row level security an index is looked into for
-- columns and constants only, not for what might fail.
WITH RECURSIVE wanted AS (
    SELECT 0 AS number, 0::bigint AS bytes, NULL::bigint AS "timestamp", NULL::text AS document,
           NULL::integer AS version, (%(timestamps)s::bigint[])[1] AS next
     UNION ALL
    SELECT wanted.number + 1, wanted.bytes + coalesce(octet_length(found.document), 0),
           found."timestamp", found.document, found.version,
           (%(timestamps)s::bigint[])[wanted.number + 2]
      FROM wanted
      LEFT JOIN LATERAL (
           SELECT "timestamp", document::text AS document, version
             FROM updates
            WHERE stream_id = (SELECT stored_as FROM readable_streams WHERE id = %(stream_id)s)
              AND tenant_id = %(tenant)s
              AND "timestamp" >= (SELECT kept_from FROM kept_histories WHERE id = %(stream_id)s)
              AND "timestamp" = wanted.next) AS found ON true
     WHERE wanted.number < %(count)s
       AND wanted.bytes < %(bytes)s
)
SELECT number, "timestamp", document, version
  FROM wanted
 WHERE number > 0
 ORDER BY number;
