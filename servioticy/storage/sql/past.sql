-- single --
-- The primary key finds each of them.
SELECT updates.stream_id, updates."timestamp", document::text
  FROM unnest(%(streams)s::bigint[], %(timestamps)s::bigint[]) AS wanted (stream_id, "timestamp")
  JOIN updates ON updates.stream_id = wanted.stream_id
              AND updates."timestamp" = wanted."timestamp";

-- size --
-- Of no more rows than are looked at, however many there are.
SELECT count(*), coalesce(sum(bytes), 0)::bigint
  FROM (SELECT octet_length(document::text) AS bytes
          FROM updates
         WHERE stream_id = ANY(%(streams)s::bigint[])
           AND "timestamp" BETWEEN %(begin)s AND %(until)s
         LIMIT %(rows)s) AS found;

-- span --
SELECT stream_id, "timestamp", document::text
  FROM updates
 WHERE stream_id = ANY(%(streams)s::bigint[])
   AND "timestamp" BETWEEN %(begin)s AND %(until)s
 ORDER BY "timestamp", log_offset, log_position
 LIMIT %(rows)s;

-- newest --
-- The primary key finds each of them. Each has the place of its question.
SELECT wanted.place, found.stream_id, found."timestamp", found.document::text
  FROM unnest(%(places)s::bigint[], %(streams)s::bigint[], %(untils)s::bigint[])
       AS wanted (place, stream_id, until)
 CROSS JOIN LATERAL (
       SELECT stream_id, "timestamp", document
         FROM updates
        WHERE updates.stream_id = wanted.stream_id
          AND "timestamp" <= wanted.until
        ORDER BY "timestamp" DESC
        LIMIT 1) AS found;
