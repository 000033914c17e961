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

-- move_progress --
UPDATE progress
   SET next_offset = %(next)s,
       emitted_offset = least(emitted_offset, %(next)s)
 WHERE log_partition = %(partition)s;

-- move_forwarded --
-- What is forwarded from there from now on has offsets of the shorter log.
UPDATE forwarded
   SET next_offset = least(next_offset, %(next)s)
 WHERE from_partition = %(partition)s;
