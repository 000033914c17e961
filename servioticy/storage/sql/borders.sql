-- name_inputs --
-- What a version's groups name of other tenants. What it named before stays as it is; what is new is
-- open if it may be read now, with the last update as it is stored now where it is kept.
WITH named AS (
    SELECT reader.id AS reader, reader.tenant_id, n.source, n.stream, n.kept,
           source.tenant_id AS provider_id, may.be_read,
           n.kept AND coalesce(known.is_open AND NOT known.kept, may.be_read) AS is_looked_up
      FROM unnest(%(sources)s::text[], %(streams)s::text[], %(kept)s::boolean[])
           AS n (source, stream, kept)
      JOIN service_objects AS reader ON reader.id = %(service_object)s
      JOIN service_objects AS source ON source.id = n.source
       AND source.tenant_id <> reader.tenant_id
      LEFT JOIN inputs_from_outside AS known ON known.reader = reader.id
       AND known.source = n.source
       AND known.stream = n.stream
     CROSS JOIN LATERAL (
           SELECT source.deleted_at IS NULL
              AND (source.public OR is_granted(source.id, n.stream, reader.tenant_id, true))
               AS be_read) AS may
)
INSERT INTO inputs_from_outside (reader, source, stream, tenant_id, provider_id, kept, is_open,
                                 named_by, "timestamp", document)
SELECT reader, source, stream, named.tenant_id, provider_id, kept, be_read, %(change)s,
       last."timestamp", last.document
  FROM named
  LEFT JOIN LATERAL (
       SELECT "timestamp", document
         FROM updates
        WHERE stream_id = (SELECT stored_as
                             FROM readable_streams
                            WHERE service_object = named.source
                              AND name = named.stream)
        ORDER BY "timestamp" DESC
        LIMIT 1) AS last ON is_looked_up
 ORDER BY source, stream
    ON CONFLICT (reader, source, stream) DO UPDATE
   SET "timestamp" = CASE WHEN NOT excluded.kept THEN NULL
                          WHEN inputs_from_outside.kept OR NOT inputs_from_outside.is_open
                          THEN inputs_from_outside."timestamp"
                          ELSE excluded."timestamp" END,
       document = CASE WHEN NOT excluded.kept THEN NULL
                       WHEN inputs_from_outside.kept OR NOT inputs_from_outside.is_open
                       THEN inputs_from_outside.document
                       ELSE excluded.document END,
       kept = excluded.kept;

-- forget_inputs --
-- Those that a version does not name; all where it names none.
WITH kept AS (
    SELECT source, stream
      FROM unnest(%(sources)s::text[], %(streams)s::text[]) AS n (source, stream)
)
DELETE FROM inputs_from_outside
 WHERE reader = %(service_object)s
   AND (source, stream) NOT IN (SELECT source, stream FROM kept)
RETURNING source, stream, awaits_at IS NOT NULL AS has_awaited;

-- forget_readers --
-- Of a Service Object that is gone.
DELETE FROM outside_readers
 WHERE source = %(service_object)s;

-- forget_marks --
-- Where nobody is fed with these streams here any more, nor may be by what has been put off.
DELETE FROM marks
 USING unnest(%(sources)s::text[], %(streams)s::text[]) AS gone (source, stream)
 WHERE log_partition = %(partition)s
   AND marks.source = gone.source
   AND marks.stream = gone.stream
   AND NOT EXISTS (
       SELECT FROM inputs_from_outside AS fed
        WHERE fed.source = marks.source
          AND fed.stream = marks.stream
          AND marks.log_partition IN (fed.fed_in, fed.left_in))
   AND NOT EXISTS (
       SELECT FROM put_off
        WHERE put_off.log_partition = %(partition)s
          AND NOT taken_up
          AND NOT held
          AND substr(record, 1, 15) = '{"kind":"begin"');

-- forget_unread_marks --
-- The same of all streams: whoever was fed here may have gone while it was computed elsewhere.
DELETE FROM marks
 WHERE log_partition = %(partition)s
   AND NOT EXISTS (
       SELECT FROM inputs_from_outside AS fed
        WHERE fed.source = marks.source
          AND fed.stream = marks.stream
          AND marks.log_partition IN (fed.fed_in, fed.left_in))
   AND NOT EXISTS (
       SELECT FROM put_off
        WHERE put_off.log_partition = %(partition)s
          AND NOT taken_up
          AND NOT held
          AND substr(record, 1, 15) = '{"kind":"begin"');

-- begun_behind --
-- Who has begun with these streams behind a place, and awaits nothing from before.
SELECT reader, known.source, known.stream
  FROM unnest(%(sources)s::text[], %(streams)s::text[]) AS asked (source, stream)
  JOIN inputs_from_outside AS known ON known.source = asked.source
   AND known.stream = asked.stream
   AND reader = ANY(%(readers)s::text[])
 WHERE awaits_at IS NULL
   AND told_in = %(from)s
   AND told_at >= %(offset)s;

-- awaiting --
-- Who awaits here what another partition sends on, and how much is held.
SELECT tenant_id,
       (SELECT count(*)
          FROM put_off
         WHERE put_off.log_partition = %(partition)s
           AND put_off.tenant_id = awaiting.tenant_id
           AND held)
  FROM (SELECT DISTINCT tenant_id
          FROM inputs_from_outside
         WHERE fed_in = %(partition)s
           AND awaits_at IS NOT NULL) AS awaiting;

-- free_held --
-- What the tenants of these readers have held waits for its turn, where they await nothing here.
UPDATE put_off
   SET held = false, was_held = true
 WHERE log_partition = %(partition)s
   AND tenant_id = %(tenant)s
   AND held
   AND NOT EXISTS (
       SELECT FROM inputs_from_outside AS awaiting
        WHERE awaiting.tenant_id = put_off.tenant_id
          AND fed_in = %(partition)s
          AND awaits_at IS NOT NULL);

-- read --
-- What a Service Object reads here from now on; neither of one that is gone, nor of one.
INSERT INTO outside_readers (reader, source, stream, tenant_id, provider_id, log_partition, change,
                             is_open)
SELECT reader.id, source.id, r.stream, reader.tenant_id, source.tenant_id, r.log_partition,
       %(change)s, r.is_open
  FROM unnest(%(sources)s::text[], %(streams)s::text[], %(partitions)s::integer[],
              %(opened)s::boolean[]) AS r (source, stream, log_partition, is_open)
  JOIN service_objects AS reader ON reader.id = %(reader)s
   AND reader.active_change < 9223372036854775807
  JOIN service_objects AS source ON source.id = r.source
   AND source.active_change < 9223372036854775807
    ON CONFLICT (reader, source, stream) DO UPDATE
   SET log_partition = excluded.log_partition, change = excluded.change,
       is_open = excluded.is_open
 WHERE outside_readers.change <= excluded.change;

-- read_no_more --
-- What this change has not named of what the provider has here.
DELETE FROM outside_readers
 USING service_objects AS source
 WHERE reader = %(reader)s
   AND change < %(change)s
   AND source.id = outside_readers.source
   AND source.tenant_id = %(provider)s
   AND source.owner_partition = %(partition)s;

-- hold_inputs --
-- Rows of these readers and streams, in an order that all keep who change them.
SELECT
  FROM inputs_from_outside
 WHERE reader = ANY(%(readers)s::text[])
   AND (source, stream) IN (SELECT source, stream
                              FROM unnest(%(sources)s::text[], %(streams)s::text[])
                                   AS s (source, stream))
   AND tenant_id = %(tenant)s
 ORDER BY reader, source, stream
   FOR UPDATE;

-- begin_inputs --
-- Where what was begun so far is not as late, and the stream has not been named anew since.
WITH begun AS (
    UPDATE inputs_from_outside
       SET is_open = true, fed_in = %(partition)s, told_in = %(from)s, told_at = %(offset)s,
           since = CASE WHEN is_open AND fed_in IS NOT NULL THEN since ELSE now() END,
           "timestamp" = CASE WHEN kept THEN last."timestamp" END,
           document = CASE WHEN kept THEN last.document::json END
      FROM unnest(%(sources)s::text[], %(streams)s::text[], %(timestamps)s::bigint[],
                  %(documents)s::text[])
           AS last (source, stream, "timestamp", document),
           unnest(%(readers)s::text[], %(changes)s::bigint[]) AS told (reader, change)
     WHERE inputs_from_outside.reader = told.reader
       AND named_by <= told.change
       AND inputs_from_outside.source = last.source
       AND inputs_from_outside.stream = last.stream
       AND tenant_id = %(tenant)s
       AND provider_id = %(provider)s
       AND (told_in = %(from)s AND told_at >= %(offset)s) IS NOT TRUE
    RETURNING inputs_from_outside.source, inputs_from_outside.stream
)
INSERT INTO marks (source, stream, log_partition, from_partition, tenant_id, log_offset, part)
SELECT DISTINCT source, stream, %(partition)s, %(from)s, %(provider)s::bigint, %(offset)s::bigint, 0
  FROM begun
 ORDER BY source, stream
    ON CONFLICT (log_partition, source, stream, from_partition) DO UPDATE
   SET log_offset = excluded.log_offset, part = excluded.part
 WHERE (marks.log_offset, marks.part) < (excluded.log_offset, excluded.part);

-- begin_moved --
-- The same of who has moved: what is known stays. The rest of what came elsewhere is awaited,
-- unless it has come.
WITH begun AS (
    UPDATE inputs_from_outside
       SET is_open = true, fed_in = %(partition)s, told_in = %(from)s, told_at = %(offset)s,
           since = CASE WHEN is_open AND fed_in IS NOT NULL THEN since ELSE now() END,
           awaits_in = CASE WHEN has_come THEN awaits_in ELSE %(from)s END,
           awaits_at = CASE WHEN has_come THEN awaits_at ELSE %(offset)s END,
           left_in = CASE WHEN has_come THEN left_in
                          WHEN fed_in = %(moved_from)s THEN fed_in END,
           left_told_in = CASE WHEN has_come THEN left_told_in ELSE told_in END,
           left_told_at = CASE WHEN has_come THEN left_told_at ELSE told_at END
      FROM (SELECT reader, source, stream,
                   (arrived_in = %(from)s AND arrived_at >= %(offset)s) IS TRUE AS has_come
              FROM inputs_from_outside
              JOIN unnest(%(readers)s::text[], %(changes)s::bigint[]) AS told (reader, change)
             USING (reader)
             WHERE named_by <= change
               AND (source, stream) IN (SELECT source, stream
                                          FROM unnest(%(sources)s::text[], %(streams)s::text[])
                                               AS s (source, stream))) AS these
     WHERE inputs_from_outside.reader = these.reader
       AND inputs_from_outside.source = these.source
       AND inputs_from_outside.stream = these.stream
       AND tenant_id = %(tenant)s
       AND provider_id = %(provider)s
       AND (told_in = %(from)s AND told_at >= %(offset)s) IS NOT TRUE
    RETURNING inputs_from_outside.source, inputs_from_outside.stream
)
INSERT INTO marks (source, stream, log_partition, from_partition, tenant_id, log_offset, part)
SELECT DISTINCT source, stream, %(partition)s, %(from)s, %(provider)s::bigint, %(offset)s::bigint, 0
  FROM begun
 ORDER BY source, stream
    ON CONFLICT (log_partition, source, stream, from_partition) DO UPDATE
   SET log_offset = excluded.log_offset, part = excluded.part
 WHERE (marks.log_offset, marks.part) < (excluded.log_offset, excluded.part);

-- begin_forwarded --
-- What was sent on changes only what is known, and whether it may be read. While something is sent
-- on what comes directly is held.
UPDATE inputs_from_outside
   SET is_open = true,
       since = CASE WHEN is_open THEN since ELSE now() END,
       "timestamp" = CASE WHEN kept THEN last."timestamp" END,
       document = CASE WHEN kept THEN last.document::json END,
       told_in = CASE WHEN awaits_at IS NULL THEN %(from)s ELSE told_in END,
       told_at = CASE WHEN awaits_at IS NULL THEN %(offset)s ELSE told_at END,
       left_told_in = CASE WHEN awaits_at IS NOT NULL THEN %(from)s ELSE left_told_in END,
       left_told_at = CASE WHEN awaits_at IS NOT NULL THEN %(offset)s ELSE left_told_at END
  FROM unnest(%(sources)s::text[], %(streams)s::text[], %(timestamps)s::bigint[],
              %(documents)s::text[]) AS last (source, stream, "timestamp", document),
       unnest(%(readers)s::text[], %(changes)s::bigint[]) AS told (reader, change)
 WHERE inputs_from_outside.reader = told.reader
   AND named_by <= told.change
   AND inputs_from_outside.source = last.source
   AND inputs_from_outside.stream = last.stream
   AND tenant_id = %(tenant)s
   AND provider_id = %(provider)s
   AND CASE WHEN awaits_at IS NULL THEN told_in = %(from)s AND told_at >= %(offset)s
            ELSE left_told_in = %(from)s AND left_told_at >= %(offset)s END IS NOT TRUE;

-- end_inputs --
-- They may not be read any more. Where another partition still has to end what it sends on, it does.
UPDATE inputs_from_outside
   SET is_open = false, "timestamp" = NULL, document = NULL,
       since = CASE WHEN is_open THEN now() ELSE since END,
       fed_in = CASE WHEN fed_in = %(partition)s AND awaits_at IS NULL THEN NULL ELSE fed_in END,
       told_in = CASE WHEN awaits_at IS NULL THEN %(from)s ELSE told_in END,
       told_at = CASE WHEN awaits_at IS NULL THEN %(offset)s ELSE told_at END,
       left_told_in = CASE WHEN awaits_at IS NOT NULL THEN %(from)s ELSE left_told_in END,
       left_told_at = CASE WHEN awaits_at IS NOT NULL THEN %(offset)s ELSE left_told_at END
  FROM unnest(%(sources)s::text[], %(streams)s::text[]) AS ended (source, stream)
 WHERE reader = ANY(%(readers)s::text[])
   AND inputs_from_outside.source = ended.source
   AND inputs_from_outside.stream = ended.stream
   AND tenant_id = %(tenant)s
   AND CASE WHEN awaits_at IS NULL THEN told_in = %(from)s AND told_at >= %(offset)s
            ELSE left_told_in = %(from)s AND left_told_at >= %(offset)s END IS NOT TRUE;

-- closes --
-- What these may read until they may not any more, as of end_inputs.
SELECT reader, inputs_from_outside.source, inputs_from_outside.stream
  FROM unnest(%(sources)s::text[], %(streams)s::text[]) AS ended (source, stream)
  JOIN inputs_from_outside ON inputs_from_outside.source = ended.source
   AND inputs_from_outside.stream = ended.stream
 WHERE reader = ANY(%(readers)s::text[])
   AND tenant_id = %(tenant)s
   AND is_open
   AND CASE WHEN awaits_at IS NULL THEN told_in = %(from)s AND told_at >= %(offset)s
            ELSE left_told_in = %(from)s AND left_told_at >= %(offset)s END IS NOT TRUE
 ORDER BY reader, inputs_from_outside.source, inputs_from_outside.stream;

-- end_moved --
-- This partition sends nothing on any more.
UPDATE inputs_from_outside
   SET fed_in = CASE WHEN left_in = %(partition)s THEN fed_in END,
       left_in = NULL
  FROM unnest(%(sources)s::text[], %(streams)s::text[]) AS ended (source, stream)
 WHERE reader = ANY(%(readers)s::text[])
   AND inputs_from_outside.source = ended.source
   AND inputs_from_outside.stream = ended.stream
   AND tenant_id = %(tenant)s
   AND (left_in = %(partition)s
        OR fed_in = %(partition)s
           AND (told_in = %(from)s AND told_at >= %(offset)s) IS NOT TRUE);

-- end_arrived --
-- All has come that another partition has sent on.
UPDATE inputs_from_outside
   SET arrived_in = %(from)s, arrived_at = %(offset)s,
       awaits_in = CASE WHEN is_over THEN NULL ELSE awaits_in END,
       awaits_at = CASE WHEN is_over THEN NULL ELSE awaits_at END,
       left_in = CASE WHEN is_over THEN NULL ELSE left_in END,
       left_told_in = CASE WHEN is_over THEN NULL ELSE left_told_in END,
       left_told_at = CASE WHEN is_over THEN NULL ELSE left_told_at END
  FROM (SELECT reader, source, stream,
               (awaits_in = %(from)s AND awaits_at <= %(offset)s) IS TRUE AS is_over
          FROM inputs_from_outside
         WHERE reader = ANY(%(readers)s::text[])
           AND (source, stream) IN (SELECT source, stream
                                      FROM unnest(%(sources)s::text[], %(streams)s::text[])
                                           AS s (source, stream))) AS these
 WHERE inputs_from_outside.reader = these.reader
   AND inputs_from_outside.source = these.source
   AND inputs_from_outside.stream = these.stream
   AND tenant_id = %(tenant)s;

-- store_inputs --
-- The last updates of inputs from outside, where they are kept.
UPDATE inputs_from_outside
   SET "timestamp" = i."timestamp", document = i.document::json
  FROM unnest(%(readers)s::text[], %(tenants)s::bigint[], %(sources)s::text[], %(streams)s::text[],
              %(timestamps)s::bigint[], %(documents)s::text[])
       AS i (reader, tenant_id, source, stream, "timestamp", document)
 WHERE inputs_from_outside.reader = i.reader
   AND inputs_from_outside.tenant_id = i.tenant_id
   AND inputs_from_outside.source = i.source
   AND inputs_from_outside.stream = i.stream
   AND kept;

-- store_marks --
-- They never fall.
INSERT INTO marks (source, stream, log_partition, from_partition, tenant_id, log_offset, part)
SELECT m.source, m.stream, %(partition)s, m.from_partition, service_objects.tenant_id,
       m.log_offset, m.part
  FROM unnest(%(sources)s::text[], %(streams)s::text[], %(from)s::integer[],
              %(offsets)s::bigint[], %(parts)s::integer[])
       AS m (source, stream, from_partition, log_offset, part)
  JOIN service_objects ON service_objects.id = m.source
    ON CONFLICT (log_partition, source, stream, from_partition) DO UPDATE
   SET log_offset = excluded.log_offset, part = excluded.part
 WHERE (marks.log_offset, marks.part) < (excluded.log_offset, excluded.part);

-- store_outside --
-- Who may read from here on, or may not any more.
UPDATE outside_readers
   SET is_open = o.is_open
  FROM unnest(%(readers)s::text[], %(tenants)s::bigint[], %(sources)s::text[], %(streams)s::text[],
              %(opened)s::boolean[]) AS o (reader, tenant_id, source, stream, is_open)
 WHERE outside_readers.reader = o.reader
   AND outside_readers.tenant_id = o.tenant_id
   AND outside_readers.source = o.source
   AND outside_readers.stream = o.stream;

-- store_crossings --
INSERT INTO crossings (log_partition, log_offset, tree, number, partitions, record)
SELECT %(partition)s, c.log_offset, c.tree, c.number, c.partitions::integer[], c.record
  FROM unnest(%(offsets)s::bigint[], %(trees)s::bigint[], %(numbers)s::integer[],
              %(partitions)s::text[], %(records)s::bytea[])
       AS c (log_offset, tree, number, partitions, record);

-- forget_crossings --
-- They are where they were sent; those of records that had been put off are told of by themselves.
DELETE FROM crossings
 WHERE log_partition = %(partition)s
   AND log_offset < %(emitted_offset)s
   AND NOT EXISTS (SELECT FROM put_off
                    WHERE put_off.log_partition = crossings.log_partition
                      AND put_off.log_offset = crossings.log_offset
                      AND put_off.tree IN (0, crossings.tree));

-- forget_late_crossings --
DELETE FROM crossings
 USING unnest(%(offsets)s::bigint[], %(trees)s::bigint[]) AS late (log_offset, tree)
 WHERE log_partition = %(partition)s
   AND crossings.log_offset = late.log_offset
   AND late.tree IN (0, crossings.tree);

-- last_crossing --
-- Up to where in the log there may be some.
SELECT max(log_offset)
  FROM crossings
 WHERE log_partition = %(partition)s;

-- crossings --
-- What is not certain to be where it was sent, in the order it was made.
SELECT log_offset, tree, number, partitions, record
  FROM crossings
 WHERE log_partition = %(partition)s
 ORDER BY log_offset, tree, number;

-- marks --
-- How far these streams have been taken in.
SELECT marks.source, marks.stream, from_partition, log_offset, part
  FROM unnest(%(sources)s::text[], %(streams)s::text[]) AS asked (source, stream)
  JOIN marks ON marks.source = asked.source
   AND marks.stream = asked.stream
   AND log_partition = %(partition)s;

-- fed --
-- Who is fed here with these streams.
SELECT fed.source, fed.stream, reader, fed.tenant_id, owner_partition
  FROM unnest(%(sources)s::text[], %(streams)s::text[]) AS asked (source, stream)
  JOIN inputs_from_outside AS fed ON fed.source = asked.source
   AND fed.stream = asked.stream
   AND %(partition)s IN (fed_in, left_in)
  JOIN service_objects ON service_objects.id = reader
 ORDER BY sequence;

-- last_inputs --
SELECT known.reader, known.source, known.stream, "timestamp", document::text
  FROM unnest(%(readers)s::text[], %(sources)s::text[], %(streams)s::text[])
       AS asked (reader, source, stream)
  JOIN inputs_from_outside AS known ON known.reader = asked.reader
   AND known.source = asked.source
   AND known.stream = asked.stream
   AND document IS NOT NULL;

-- inputs --
-- What these Service Objects read of others.
SELECT reader, source, stream, provider_id, is_open
  FROM inputs_from_outside
 WHERE reader = ANY(%(ids)s::text[]);

-- read_in --
-- In which partitions others may read these Service Objects. Not for one after the other: where one
-- is read by ten thousand, Postgres would take all others for such as well.
SELECT DISTINCT source, stream, log_partition
  FROM outside_readers
 WHERE source = ANY(%(ids)s::text[])
   AND is_open
 ORDER BY source, stream, log_partition;

-- outside_readers --
-- Who of other tenants reads its streams.
SELECT reader, outside_readers.tenant_id, source, stream, log_partition, change, is_open
  FROM outside_readers
  JOIN service_objects ON service_objects.id = reader
 WHERE source = %(service_object)s
 ORDER BY sequence, stream;

-- reading --
-- What a Service Object reads of what a provider has in a partition.
SELECT reader, outside_readers.tenant_id, outside_readers.source, stream, log_partition, change,
       is_open
  FROM outside_readers
  JOIN service_objects AS source ON source.id = outside_readers.source
   AND source.tenant_id = %(provider)s
   AND source.owner_partition = %(partition)s
 WHERE reader = %(reader)s
 ORDER BY outside_readers.source, stream;
