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
-- Where progress stands within a record, what is stored of it is below zero, too.
SELECT tenant_id, stream_id, "timestamp", document, version, log_partition,
       CASE WHEN log_offset < next_offset + (next_tree > 0)::integer
            THEN log_offset - next_offset - (next_tree > 0)::integer
            ELSE -4611686018427387904 END AS log_offset,
       log_position
  FROM stored_updates
  JOIN progress USING (log_partition)

-- copy_superseded --
SELECT log_partition, log_offset - next_offset - (next_tree > 0)::integer AS log_offset,
       log_position, stream_id, tenant_id, "timestamp", document, version, tree
  FROM superseded
  JOIN progress USING (log_partition)

-- copy_put_off --
-- What records name is renumbered by a restore.
SELECT log_partition, log_offset - next_offset - (next_tree > 0)::integer AS log_offset, tenant_id,
       service_object, record, taken_up, tree, held, was_held
  FROM put_off
  JOIN progress USING (log_partition)

-- copy_crossings --
SELECT log_partition, log_offset - next_offset - (next_tree > 0)::integer AS log_offset, tree,
       number, partitions, record
  FROM crossings
  JOIN progress USING (log_partition)

-- copy_progress --
SELECT log_partition, 0 AS next_offset,
       emitted_offset - next_offset - (next_tree > 0)::integer AS emitted_offset, next_tree
  FROM progress

-- copy_marks --
SELECT marks.log_partition, source, stream, from_partition, tenant_id,
       log_offset - coalesce(next_offset + (next_tree > 0)::integer, 0) AS log_offset, part
  FROM marks
  LEFT JOIN progress ON progress.log_partition = mod(from_partition, 1073741824)

-- copy_inputs_from_outside --
-- Each place counts from progress of the partition that it is of.
WITH begun AS (
    SELECT log_partition, next_offset + (next_tree > 0)::integer AS next
      FROM progress
)
SELECT reader, source, stream, tenant_id, provider_id, kept, is_open, fed_in, left_in,
       told_in, told_at - coalesce(told.next, 0) AS told_at,
       left_told_in, left_told_at - coalesce(left_told.next, 0) AS left_told_at,
       awaits_in, awaits_at - coalesce(awaits.next, 0) AS awaits_at,
       arrived_in, arrived_at - coalesce(arrived.next, 0) AS arrived_at,
       since, named_by, "timestamp", document
  FROM inputs_from_outside
  LEFT JOIN begun AS told ON told.log_partition = told_in
  LEFT JOIN begun AS left_told ON left_told.log_partition = left_told_in
  LEFT JOIN begun AS awaits ON awaits.log_partition = awaits_in
  LEFT JOIN begun AS arrived ON arrived.log_partition = arrived_in

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
