-- single --
-- What each of them takes on disk: a document has no fewer bytes than it has there, but for four
-- that tell how long it is. The primary key finds each, and nothing is opened.
SELECT updates.stream_id, updates."timestamp", greatest(0, pg_column_size(document) - 4)
  FROM unnest(%(streams)s::bigint[], %(timestamps)s::bigint[])
       WITH ORDINALITY AS wanted (stream_id, "timestamp", place)
  JOIN updates ON updates.stream_id = wanted.stream_id
              AND updates."timestamp" = wanted."timestamp"
 ORDER BY place;

-- span --
-- The same of those in a span, of no more rows than are looked at, however many there are.
SELECT stream_id, "timestamp", greatest(0, pg_column_size(document) - 4)
  FROM (SELECT stream_id, "timestamp", document, log_offset, log_position
          FROM updates
         WHERE stream_id = ANY(%(streams)s::bigint[])
           AND "timestamp" BETWEEN %(begin)s AND %(until)s
         LIMIT %(rows)s) AS found
 ORDER BY "timestamp", log_offset, log_position;

-- newest --
-- The same of the newest of each stream up to a time. The primary key finds each of them.
SELECT found.stream_id, found."timestamp", greatest(0, pg_column_size(found.document) - 4)
  FROM unnest(%(streams)s::bigint[]) AS wanted (stream_id)
 CROSS JOIN LATERAL (
       SELECT stream_id, "timestamp", document
         FROM updates
        WHERE updates.stream_id = wanted.stream_id
          AND "timestamp" BETWEEN %(begin)s AND %(until)s
        ORDER BY "timestamp" DESC
        LIMIT 1) AS found
 LIMIT %(rows)s;

-- documents --
SELECT updates.stream_id, updates."timestamp", document::text
  FROM unnest(%(streams)s::bigint[], %(timestamps)s::bigint[]) AS wanted (stream_id, "timestamp")
  JOIN updates ON updates.stream_id = wanted.stream_id
              AND updates."timestamp" = wanted."timestamp";
