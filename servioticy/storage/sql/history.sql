-- updates_of_stream --
-- Everything stored of a stream, oldest first: clients read the last element as the newest.
SELECT document::text, version
  FROM updates
 WHERE stream_id = %(stream)s
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
