-- keep --
-- Records that their partition computes later than at their place in the log; and those that have
-- waited, and are to be held now.
INSERT INTO put_off (log_partition, log_offset, tree, tenant_id, service_object, record, held)
SELECT %(partition)s, p.log_offset, p.tree, p.tenant_id, p.service_object, p.record, p.held
  FROM unnest(%(offsets)s::bigint[], %(trees)s::bigint[], %(tenants)s::bigint[],
              %(service_objects)s::text[], %(records)s::bytea[], %(held)s::boolean[])
       AS p (log_offset, tree, tenant_id, service_object, record, held)
    ON CONFLICT (log_partition, log_offset, tree) DO UPDATE
   SET held = true
 WHERE excluded.held
   AND NOT put_off.taken_up;

-- keep_long --
-- The same for one that is long, which comes as a text.
INSERT INTO put_off (log_partition, log_offset, tree, tenant_id, service_object, record, held)
VALUES (%(partition)s, %(offset)s, %(tree)s, %(tenant)s, %(service_object)s,
        convert_to(%(record)s, 'UTF8'), %(held)s)
    ON CONFLICT (log_partition, log_offset, tree) DO UPDATE
   SET held = true
 WHERE excluded.held
   AND NOT put_off.taken_up;

-- oldest --
-- The oldest of a tenant, up to a number and a size; the first whatever its size.
COPY (
SELECT log_offset, tree, was_held, service_object, record
  FROM (SELECT log_offset, service_object, record, tree, was_held,
               sum(octet_length(record)) OVER (ORDER BY log_offset, tree) - octet_length(record)
               AS before
          FROM (SELECT log_offset, service_object, record, tree, was_held
                  FROM put_off
                 WHERE log_partition = %(partition)s
                   AND tenant_id = %(tenant)s
                   AND NOT taken_up
                   AND NOT held
                 ORDER BY log_offset, tree
                 LIMIT %(most)s) AS oldest) AS summed
 WHERE before < %(most_bytes)s
 ORDER BY log_offset, tree
) TO STDOUT (FORMAT binary);

-- waiting --
SELECT tenant_id, count(*)
  FROM put_off
 WHERE log_partition = %(partition)s
   AND NOT taken_up
   AND NOT held
 GROUP BY tenant_id;

-- begins --
-- By how they are written: `kind` comes first.
SELECT record
  FROM put_off
 WHERE log_partition = %(partition)s
   AND NOT taken_up
   AND NOT held
   AND substr(record, 1, 15) = '{"kind":"begin"'
 ORDER BY log_offset;

-- take_up --
-- They are computed; they stay until all that came of them is emitted.
UPDATE put_off
   SET taken_up = true
  FROM unnest(%(offsets)s::bigint[], %(trees)s::bigint[]) AS taken (log_offset, tree)
 WHERE log_partition = %(partition)s
   AND put_off.log_offset = taken.log_offset
   AND put_off.tree = taken.tree;

-- taken_up --
SELECT log_offset, tree
  FROM put_off
 WHERE log_partition = %(partition)s
   AND taken_up
 ORDER BY log_offset, tree;

-- forget_emitted --
DELETE FROM put_off
 USING unnest(%(offsets)s::bigint[], %(trees)s::bigint[]) AS emitted (log_offset, tree)
 WHERE log_partition = %(partition)s
   AND put_off.log_offset = emitted.log_offset
   AND put_off.tree = emitted.tree
   AND taken_up;
