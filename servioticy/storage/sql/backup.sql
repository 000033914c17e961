-- one_moment --
-- All that is read until the end of the transaction is as it is at its next statement.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;

-- moment --
-- The first statement: which moment it is.
SELECT now(), current_setting('server_version');

-- columns --
-- Of tables those that a row is made of: not what Postgres computes by itself.
SELECT attname
  FROM pg_attribute
 WHERE attrelid = %(table)s::regclass
   AND attnum > 0
   AND NOT attisdropped
   AND attgenerated = ''
 ORDER BY attnum;

-- sequences --
SELECT sequencename
  FROM pg_sequences
 WHERE schemaname = 'public'
   AND sequenceowner = (SELECT tableowner FROM pg_tables
                         WHERE schemaname = 'public' AND tablename = 'migrations')
 ORDER BY sequencename;

-- copy --
COPY (SELECT {names} FROM {source}) TO STDOUT;

-- copy_stored_updates --
-- Rows of a log that is gone may have larger offsets than stored progress: they mean nothing.
SELECT tenant_id, stream_id, "timestamp", document, version, log_partition,
       CASE WHEN log_offset < next_offset THEN log_offset - next_offset
            ELSE -4611686018427387904 END AS log_offset,
       log_position
  FROM stored_updates
  JOIN progress USING (log_partition)

-- copy_superseded --
SELECT log_partition, log_offset - next_offset AS log_offset, log_position, stream_id, tenant_id,
       "timestamp", document, version
  FROM superseded
  JOIN progress USING (log_partition)

-- copy_put_off --
SELECT log_partition, log_offset - next_offset AS log_offset, tenant_id, service_object, record,
       taken_up
  FROM put_off
  JOIN progress USING (log_partition)

-- copy_progress --
SELECT log_partition, 0 AS next_offset, emitted_offset - next_offset AS emitted_offset
  FROM progress

-- copy_forwarded --
SELECT to_partition, from_partition,
       forwarded.next_offset - coalesce(progress.next_offset, 0) AS next_offset
  FROM forwarded
  LEFT JOIN progress ON log_partition = from_partition

-- streams_of --
-- Which streams these subscriptions are about, and these composite streams, as keys of `emitted`.
SELECT subscription_id, service_object || '/' || name
  FROM subscribed_streams
  JOIN streams ON streams.id = stream_id
 WHERE subscription_id = ANY(%(ids)s::text[])
 UNION ALL
SELECT %(prefix)s || id, service_object || '/' || name
  FROM streams
 WHERE id = ANY(%(streams)s::bigint[])
 LIMIT %(most)s;
