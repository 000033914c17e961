-- replaced --
-- The bytes of those of these updates that are stored already, by stream; and of what streams have
-- taken back, where that is kept no longer from a timestamp on.
SELECT stream_id, sum(bytes)::bigint
  FROM (SELECT asked.stream_id, octet_length(document::text) AS bytes
          FROM unnest(%(streams)s::bigint[], %(timestamps)s::bigint[])
               AS asked (stream_id, "timestamp")
          JOIN updates ON updates.stream_id = asked.stream_id
           AND updates."timestamp" = asked."timestamp"
         UNION ALL
        SELECT states.stream_id, octet_length(taken_back::text)
          FROM unnest(%(touched)s::bigint[], %(ends)s::bigint[]) AS touched (stream_id, ends)
          JOIN states ON states.stream_id = touched.stream_id
           AND taken_back_at <= ends) AS lost
 GROUP BY stream_id;

-- kept --
-- The bytes of what is kept of what these streams have taken back.
SELECT stream_id, octet_length(taken_back::text)
  FROM states
 WHERE stream_id = ANY(%(streams)s::bigint[])
   AND taken_back_at IS NOT NULL;
