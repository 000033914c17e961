-- identity --
-- Which topic progress is a place in, if that is known yet.
SELECT topic, topic_id
  FROM log_identity;

-- progress --
SELECT log_partition, next_offset
  FROM progress;

-- note --
INSERT INTO log_identity (topic, topic_id)
VALUES (%(topic)s, %(topic_id)s)
ON CONFLICT DO NOTHING;

-- wait_for_workers --
-- Nobody stores while progress is moved by hand: the row is locked, and the fence sees it.
SELECT log_partition
  FROM progress
   FOR UPDATE;

-- replace --
INSERT INTO log_identity (topic, topic_id)
VALUES (%(topic)s, %(topic_id)s)
ON CONFLICT (one_row) DO UPDATE
   SET topic = excluded.topic, topic_id = excluded.topic_id, noted_at = now();

-- record_loss --
INSERT INTO log_losses (log_partition, topic_id, stored_offset, log_first, log_end)
VALUES (%(partition)s, %(topic_id)s, %(stored)s, %(first)s, %(end)s);

-- keep_unacknowledged --
-- What is stored but perhaps not emitted is emitted again as what was computed late is: by the
-- new progress it cannot be told.
INSERT INTO put_off (log_partition, log_offset, tenant_id, service_object, record, taken_up)
SELECT log_partition, log_offset, min(made.tenant_id), '', '', true
  FROM (SELECT log_partition, log_offset, tenant_id FROM updates
         UNION ALL
        SELECT log_partition, log_offset, tenant_id FROM superseded
         UNION ALL
        SELECT log_partition, log_offset,
               (convert_from(record, 'UTF8')::json ->> 'provider')::bigint FROM crossings
       ) AS made
  JOIN progress USING (log_partition)
 WHERE log_partition = %(partition)s
   AND log_offset >= emitted_offset
   AND log_offset < %(beyond)s
 GROUP BY log_partition, log_offset
    ON CONFLICT DO NOTHING;

-- forget_superseded --
-- Subscribers have them.
DELETE FROM superseded
 WHERE log_partition = %(partition)s
   AND NOT EXISTS (SELECT FROM put_off
                    WHERE put_off.log_partition = superseded.log_partition
                      AND put_off.log_offset = superseded.log_offset
                      AND put_off.tree IN (0, superseded.tree));

-- renumber_updates --
-- Of what is not emitted: the log gives these offsets to others from now on.
UPDATE updates
   SET log_offset = updates.log_offset - %(beyond)s
  FROM put_off
 WHERE put_off.log_partition = %(partition)s
   AND updates.log_partition = put_off.log_partition
   AND updates.log_offset = put_off.log_offset
   AND taken_up
   AND (put_off.tree = 0 OR put_off.tenant_id = updates.tenant_id);

-- renumber_put_off --
-- In two steps: those of an earlier loss are in the way.
UPDATE put_off
   SET log_offset = log_offset + %(by)s
 WHERE log_partition = %(partition)s;

-- renumber_superseded --
UPDATE superseded
   SET log_offset = log_offset + %(by)s
 WHERE log_partition = %(partition)s;

-- renumber_crossings --
UPDATE crossings
   SET log_offset = log_offset + %(by)s
 WHERE log_partition = %(partition)s;

-- renumber_marks --
-- What comes from there from now on has places of the shorter log, and none of them is older. Its
-- channel of what was held (servioticy/domain/borders.py) has a number of its own.
UPDATE marks
   SET log_offset = log_offset - %(beyond)s
 WHERE mod(from_partition, 1073741824) = %(partition)s;

-- renumber_places --
UPDATE inputs_from_outside
   SET told_at = told_at - CASE WHEN told_in = %(partition)s THEN %(beyond)s ELSE 0 END,
       left_told_at = left_told_at
                      - CASE WHEN left_told_in = %(partition)s THEN %(beyond)s ELSE 0 END,
       awaits_at = awaits_at - CASE WHEN awaits_in = %(partition)s THEN %(beyond)s ELSE 0 END,
       arrived_at = arrived_at - CASE WHEN arrived_in = %(partition)s THEN %(beyond)s ELSE 0 END
 WHERE %(partition)s IN (told_in, left_told_in, awaits_in, arrived_in);

-- crossed_put_off --
-- Records behind this one that have come over borders and wait, some at a time: msgspec writes the
-- kind first.
SELECT log_partition, log_offset, tree, 0 AS number, record
  FROM put_off
 WHERE (log_partition, log_offset, tree) > (%(partition)s, %(offset)s, %(tree)s)
   AND substr(record, 1, 11) IN ('{"kind":"bo', '{"kind":"be', '{"kind":"en')
 ORDER BY log_partition, log_offset, tree
 LIMIT %(most)s;

-- crossed_crossings --
SELECT log_partition, log_offset, tree, number, record
  FROM crossings
 WHERE (log_partition, log_offset, tree, number)
       > (%(partition)s, %(offset)s, %(tree)s, %(number)s)
 ORDER BY log_partition, log_offset, tree, number
 LIMIT %(most)s;

-- rewrite_put_off --
UPDATE put_off
   SET record = r.record
  FROM unnest(%(partitions)s::integer[], %(offsets)s::bigint[], %(trees)s::bigint[],
              %(numbers)s::integer[], %(records)s::bytea[])
       AS r (log_partition, log_offset, tree, number, record)
 WHERE put_off.log_partition = r.log_partition
   AND put_off.log_offset = r.log_offset
   AND put_off.tree = r.tree;

-- rewrite_crossings --
UPDATE crossings
   SET record = r.record
  FROM unnest(%(partitions)s::integer[], %(offsets)s::bigint[], %(trees)s::bigint[],
              %(numbers)s::integer[], %(records)s::bytea[])
       AS r (log_partition, log_offset, tree, number, record)
 WHERE crossings.log_partition = r.log_partition
   AND crossings.log_offset = r.log_offset
   AND crossings.tree = r.tree
   AND crossings.number = r.number;

-- move_progress --
-- Moved back, what was perhaps not emitted is noted in put_off.
UPDATE progress
   SET next_offset = %(next)s,
       next_tree = CASE WHEN next_offset = %(next)s THEN next_tree ELSE 0 END,
       emitted_offset = CASE WHEN next_offset > %(next)s THEN %(next)s ELSE emitted_offset END
 WHERE log_partition = %(partition)s;

-- move_forwarded --
-- What is forwarded from there from now on has offsets of the shorter log.
UPDATE forwarded
   SET next_offset = least(next_offset, %(next)s)
 WHERE from_partition = %(partition)s;

-- begin_anew --
-- Of each partition of another log all before this is stored, and emitted or noted in put_off.
INSERT INTO progress (log_partition, next_offset, emitted_offset)
SELECT log_partition, next_offset, next_offset
  FROM unnest(%(partitions)s::integer[], %(offsets)s::bigint[]) AS p (log_partition, next_offset)
    ON CONFLICT (log_partition) DO UPDATE
   SET next_offset = excluded.next_offset, emitted_offset = excluded.emitted_offset;

-- begin_forwarded_anew --
-- They count from stored progress, as all that comes out of a back-up.
UPDATE forwarded
   SET next_offset = greatest(0, forwarded.next_offset + p.next_offset)
  FROM unnest(%(partitions)s::integer[], %(offsets)s::bigint[]) AS p (log_partition, next_offset)
 WHERE from_partition = log_partition;
