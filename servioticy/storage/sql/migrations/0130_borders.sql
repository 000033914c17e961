-- What crosses from tenant to tenant goes through the log (decision 0046). Components are of one
-- tenant; a record of the log may grow a tree for each of several tenants.

ALTER TABLE progress ADD COLUMN next_tree bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN progress.next_tree IS
    'trees of the record at next_offset with smaller numbers are stored, too';

ALTER TABLE put_off ADD COLUMN tree bigint NOT NULL DEFAULT 0;
ALTER TABLE put_off ADD COLUMN held boolean NOT NULL DEFAULT false;
ALTER TABLE put_off ADD COLUMN was_held boolean NOT NULL DEFAULT false;
ALTER TABLE put_off DROP CONSTRAINT put_off_pkey;
ALTER TABLE put_off ADD PRIMARY KEY (log_partition, log_offset, tree);
COMMENT ON COLUMN put_off.record IS
    'as it stands in the log; of what crosses a border what concerns this tree';
COMMENT ON COLUMN put_off.tree IS
    'for which tenant, where the record grows a tree for each; 0: it grows one';
COMMENT ON COLUMN put_off.held IS
    'it waits until all has come that another partition sends on to the tenant, not for its turn';
COMMENT ON COLUMN put_off.was_held IS
    'it has, and waits for its turn since: it is ahead of what came later, but not of its place';
DROP INDEX put_off_waiting;
CREATE INDEX put_off_waiting ON put_off (log_partition, tenant_id, log_offset, tree)
 WHERE NOT taken_up AND NOT held;
CREATE INDEX put_off_held ON put_off (log_partition, tenant_id) WHERE held;
-- By how they are written: `kind` comes first.
CREATE INDEX put_off_begins ON put_off (log_partition, log_offset)
 WHERE NOT taken_up AND NOT held AND substr(record, 1, 15) = '{"kind":"begin"';

ALTER TABLE superseded ADD COLUMN tree bigint NOT NULL DEFAULT 0;
ALTER TABLE superseded DROP CONSTRAINT superseded_pkey;
ALTER TABLE superseded ADD PRIMARY KEY (log_partition, log_offset, tree, log_position);

-- What a Service Object reads of other tenants, as it is known where that is computed. A place is a
-- partition of the provider's and an offset there.
CREATE TABLE inputs_from_outside (
    reader text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    source text NOT NULL,
    stream text NOT NULL,
    tenant_id bigint NOT NULL,
    provider_id bigint NOT NULL,
    kept boolean NOT NULL,
    is_open boolean NOT NULL DEFAULT true,
    fed_in integer,
    left_in integer,
    told_in integer,
    told_at bigint,
    left_told_in integer,
    left_told_at bigint,
    awaits_in integer,
    awaits_at bigint,
    arrived_in integer,
    arrived_at bigint,
    since timestamptz NOT NULL DEFAULT now(),
    named_by bigint NOT NULL DEFAULT 0,
    "timestamp" bigint,
    document json,
    PRIMARY KEY (reader, source, stream)
);
COMMENT ON TABLE inputs_from_outside IS
    'streams of other tenants that the groups of the version in force name: what the reader may '
    'read of them, what it knows, and where updates of them come to it';
COMMENT ON COLUMN inputs_from_outside.source IS 'the Service Object that has the stream';
COMMENT ON COLUMN inputs_from_outside.tenant_id IS 'the reader''s';
COMMENT ON COLUMN inputs_from_outside.kept IS
    'whether its last update is known here: something is computed by it that another input triggers';
COMMENT ON COLUMN inputs_from_outside.is_open IS 'whether it may be read';
COMMENT ON COLUMN inputs_from_outside.fed_in IS 'the partition where updates of it are for the reader';
COMMENT ON COLUMN inputs_from_outside.left_in IS
    'the partition where they were, and which sends on what still comes there';
COMMENT ON COLUMN inputs_from_outside.told_at IS
    'place of the last begin or end that was heeded: what is not later changes nothing';
COMMENT ON COLUMN inputs_from_outside.left_told_at IS 'the same of what is sent on';
COMMENT ON COLUMN inputs_from_outside.awaits_at IS
    'place of the move of which not all has come yet; null: of none';
COMMENT ON COLUMN inputs_from_outside.arrived_at IS 'place of the last move of which all has come';
COMMENT ON COLUMN inputs_from_outside.since IS
    'when it was first fed with what it may read, or that ended; before, when it was named';
COMMENT ON COLUMN inputs_from_outside.named_by IS
    'number of the change by which it was named: what is told by an earlier one is not of this';
CREATE INDEX inputs_by_stream ON inputs_from_outside (source, stream);
CREATE INDEX inputs_awaiting ON inputs_from_outside (tenant_id, fed_in)
 WHERE awaits_at IS NOT NULL;

-- The same edges as the partitions of the streams know them.
CREATE TABLE outside_readers (
    reader text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    source text NOT NULL,
    stream text NOT NULL,
    tenant_id bigint NOT NULL,
    provider_id bigint NOT NULL,
    log_partition integer NOT NULL,
    change bigint NOT NULL,
    is_open boolean NOT NULL,
    PRIMARY KEY (reader, source, stream)
);
COMMENT ON TABLE outside_readers IS 'who reads streams of other tenants, and where to send them';
COMMENT ON COLUMN outside_readers.tenant_id IS 'the reader''s';
COMMENT ON COLUMN outside_readers.log_partition IS 'where the reader is computed';
COMMENT ON COLUMN outside_readers.change IS 'number of the change by which it reads that';
COMMENT ON COLUMN outside_readers.is_open IS 'whether it may: nothing is sent to others';
CREATE INDEX outside_readers_by_source
    ON outside_readers (source, is_open, stream, log_partition);

CREATE TABLE marks (
    log_partition integer NOT NULL,
    source text NOT NULL,
    stream text NOT NULL,
    from_partition integer NOT NULL,
    tenant_id bigint NOT NULL,
    log_offset bigint NOT NULL,
    part integer NOT NULL,
    PRIMARY KEY (log_partition, source, stream, from_partition)
);
COMMENT ON TABLE marks IS
    'updates of streams of other tenants are taken once, in order, as long as somebody reads them';
COMMENT ON COLUMN marks.tenant_id IS 'whose stream it is';
COMMENT ON COLUMN marks.log_offset IS 'of from_partition: where the last one that came was made';

CREATE TABLE crossings (
    log_partition integer NOT NULL,
    log_offset bigint NOT NULL,
    tree bigint NOT NULL,
    number integer NOT NULL,
    partitions integer[] NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (log_partition, log_offset, tree, number)
);
COMMENT ON TABLE crossings IS
    'records for other partitions of the log, until they are certain to be there';
-- It is read when a worker begins, and goes: to compress it would cost more than it saves.
ALTER TABLE crossings ALTER COLUMN record SET STORAGE EXTERNAL;

SELECT force_row_level_security(named)
  FROM unnest('{inputs_from_outside, outside_readers, marks}'::text[]) AS named;
GRANT SELECT ON inputs_from_outside, outside_readers TO servioticy_api;
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{inputs_from_outside, marks}');
SELECT for_all_tenants('servioticy_platform', 'DELETE', '{marks}');
GRANT SELECT ON inputs_from_outside TO servioticy_platform;
GRANT SELECT, DELETE ON marks TO servioticy_platform;
SELECT for_all_tenants('servioticy_pipeline', command,
                       '{inputs_from_outside, outside_readers, marks}')
  FROM unnest('{SELECT, INSERT, UPDATE, DELETE}'::text[]) AS command;
GRANT SELECT, INSERT, UPDATE, DELETE ON inputs_from_outside, outside_readers, marks, crossings
   TO servioticy_pipeline;

-- Components that reach from tenant to tenant are split where the log is stored up to. Nothing
-- moves, and what was read of others is read on.

ALTER TABLE service_objects NO FORCE ROW LEVEL SECURITY;
ALTER TABLE definitions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE streams NO FORCE ROW LEVEL SECURITY;
ALTER TABLE graph_edges NO FORCE ROW LEVEL SECURITY;
ALTER TABLE grants NO FORCE ROW LEVEL SECURITY;
ALTER TABLE updates NO FORCE ROW LEVEL SECURITY;
ALTER TABLE pending_changes NO FORCE ROW LEVEL SECURITY;
ALTER TABLE inputs_from_outside NO FORCE ROW LEVEL SECURITY;
ALTER TABLE outside_readers NO FORCE ROW LEVEL SECURITY;
ALTER TABLE service_objects DISABLE TRIGGER USER;

-- What the groups of a document name; where Postgres cannot read it, nothing.
CREATE FUNCTION named_by_groups(document json) RETURNS TABLE (source text, stream text)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    SELECT DISTINCT member.value,
           CASE json_typeof(its.stream) WHEN 'array' THEN its.stream ->> 0
                                        ELSE its.stream #>> '{}' END
      FROM json_each(object_or_empty(document -> 'groups')) AS named
     CROSS JOIN LATERAL (SELECT object_or_empty(named.value) AS content) AS each_one
     CROSS JOIN LATERAL (
           SELECT coalesce(content -> 'stream',
                           object_or_empty(content -> 'where') -> 'stream') AS stream) AS its
     CROSS JOIN LATERAL json_array_elements_text(array_or_empty(content -> 'soIds')) AS member;
EXCEPTION WHEN data_exception THEN
    RETURN;
END $$;

-- The edges by which the pipeline computes; those of the API are ahead where the log is not stored
-- up to a definition yet.
CREATE TEMPORARY TABLE active_edges ON COMMIT DROP AS
SELECT reader.id AS reader, reader.tenant_id, source.id AS source,
       source.tenant_id AS provider_id, streams.name AS stream
  FROM graph_edges
  JOIN service_objects AS reader ON reader.id = graph_edges.reader
   AND reader.active_version = reader.version
  JOIN streams ON streams.id = stream_id
  JOIN service_objects AS source ON source.id = streams.service_object
 UNION
SELECT reader.id, reader.tenant_id, source.id, source.tenant_id, named.stream
  FROM service_objects AS reader
  JOIN definitions ON definitions.service_object = reader.id
   AND definitions.version = reader.active_version
 CROSS JOIN LATERAL named_by_groups(document) AS named
  JOIN service_objects AS source ON source.id = named.source
 WHERE reader.active_version <> reader.version;

CREATE TEMPORARY TABLE of_shared ON COMMIT DROP AS
SELECT id, tenant_id, component, sequence, sequence AS first
  FROM service_objects
 WHERE component IN (SELECT component
                       FROM service_objects
                      GROUP BY component
                     HAVING count(DISTINCT tenant_id) > 1);
CREATE UNIQUE INDEX ON of_shared (sequence);

CREATE TEMPORARY TABLE links ON COMMIT DROP AS
WITH edges AS (
    SELECT reader, source
      FROM active_edges
     UNION
    SELECT reader, streams.service_object
      FROM graph_edges
      JOIN streams ON streams.id = stream_id
)
SELECT one.sequence AS one, another.sequence AS another
  FROM (SELECT reader AS one, source AS another FROM edges
         UNION
        SELECT source, reader FROM edges) AS both_ways
  JOIN of_shared AS one ON one.id = both_ways.one
  JOIN of_shared AS another ON another.id = both_ways.another
   AND another.tenant_id = one.tenant_id
   AND another.component = one.component;

-- Each learns of the first that its neighbours know, and of the first that that one knows.
DO $$
DECLARE
    learned bigint;
BEGIN
    ANALYZE of_shared;
    ANALYZE links;
    LOOP
        UPDATE of_shared
           SET first = known.first
          FROM (SELECT one, min(of_shared.first) AS first
                  FROM links
                  JOIN of_shared ON sequence = another
                 GROUP BY one) AS known
         WHERE sequence = one
           AND known.first < of_shared.first;
        GET DIAGNOSTICS learned = ROW_COUNT;
        EXIT WHEN learned = 0;
        UPDATE of_shared
           SET first = known.first
          FROM of_shared AS known
         WHERE known.sequence = of_shared.first
           AND known.first < of_shared.first;
    END LOOP;
END $$;

UPDATE service_objects
   SET component = named.id
  FROM of_shared
  JOIN of_shared AS named ON named.sequence = of_shared.first
 WHERE service_objects.id = of_shared.id
   AND service_objects.component <> named.id;

-- Whether composites read on something that is not known here is not known either: all is kept.
CREATE TEMPORARY TABLE outside_edges ON COMMIT DROP AS
SELECT reader.id AS reader, source.id AS source, stream, reader.tenant_id,
       source.tenant_id AS provider_id, reader.owner_partition, reader.active_change,
       source.active_version IS NOT NULL
       AND (CASE WHEN source.active_version = source.version THEN source.public
                 ELSE (definitions.document -> 'public')::text IN ('true', '"true"') END
            OR EXISTS (SELECT FROM grants
                        WHERE grants.service_object = source.id
                          AND (grants.stream IS NULL OR grants.stream = active_edges.stream)
                          AND (grantee IS NULL OR grantee = reader.tenant_id)
                          AND active)) IS TRUE AS is_open
  FROM active_edges
  JOIN service_objects AS reader ON reader.id = active_edges.reader
  JOIN service_objects AS source ON source.id = active_edges.source
  LEFT JOIN definitions ON definitions.service_object = source.id
   AND definitions.version = source.active_version
 WHERE active_edges.tenant_id <> active_edges.provider_id;

INSERT INTO inputs_from_outside (reader, source, stream, tenant_id, provider_id, kept, is_open,
                                 fed_in, "timestamp", document)
SELECT reader, source, stream, outside_edges.tenant_id, provider_id, true, is_open,
       CASE WHEN is_open THEN owner_partition END, last."timestamp", last.document
  FROM outside_edges
  LEFT JOIN LATERAL (
       SELECT "timestamp", document
         FROM updates
        WHERE stream_id = (SELECT stored_as
                             FROM streams
                            WHERE service_object = outside_edges.source
                              AND name = outside_edges.stream)
        ORDER BY "timestamp" DESC
        LIMIT 1) AS last ON is_open;

INSERT INTO outside_readers (reader, source, stream, tenant_id, provider_id, log_partition, change,
                             is_open)
SELECT reader, source, stream, outside_edges.tenant_id, provider_id,
       outside_edges.owner_partition, outside_edges.active_change, is_open
  FROM outside_edges
  JOIN service_objects ON service_objects.id = source
 WHERE service_objects.active_change < 9223372036854775807;

-- A definition or a move that is still to come in the log does not say what is read of others: its
-- version is put in force once more behind it, which does.
CREATE TEMPORARY TABLE to_come ON COMMIT DROP AS
SELECT moved.id, (change ->> 'partition')::integer AS partition, pending_changes.id AS number
  FROM pending_changes
 CROSS JOIN LATERAL json_array_elements(array_or_empty(change -> 'moves')) AS leaving
 CROSS JOIN LATERAL json_array_elements_text(leaving -> 1) AS moved (id);

CREATE TEMPORARY TABLE routed ON COMMIT DROP AS
SELECT id, tenant_id, deleted_at,
       coalesce((SELECT partition
                   FROM to_come
                  WHERE to_come.id = service_objects.id
                  ORDER BY number DESC
                  LIMIT 1), route_partition) AS partition
  FROM service_objects;
CREATE UNIQUE INDEX ON routed (id);

CREATE TEMPORARY TABLE told_again ON COMMIT DROP AS
WITH behind AS (
    SELECT service_objects.id, service_objects.tenant_id, version, routed.partition
      FROM service_objects
      JOIN routed ON routed.id = service_objects.id
     WHERE service_objects.deleted_at IS NULL
       AND (active_version IS DISTINCT FROM version OR owner_partition <> routed.partition)
), edges AS (
    SELECT graph_edges.reader, source.tenant_id AS provider_id, source.partition,
           source.id AS source, streams.name AS stream, true AS is_read
      FROM graph_edges
      JOIN behind ON behind.id = graph_edges.reader
      JOIN streams ON streams.id = stream_id
      JOIN routed AS source ON source.id = streams.service_object
       AND source.tenant_id <> behind.tenant_id
       AND source.deleted_at IS NULL
     UNION
    SELECT outside_edges.reader, source.tenant_id, source.partition, NULL, NULL, false
      FROM outside_edges
      JOIN behind ON behind.id = outside_edges.reader
      JOIN routed AS source ON source.id = outside_edges.source
       AND source.deleted_at IS NULL
), readings AS (
    SELECT reader, provider_id, partition,
           coalesce(json_agg(DISTINCT jsonb_build_array(source, stream))
                    FILTER (WHERE is_read), '[]') AS sources
      FROM edges
     GROUP BY reader, provider_id, partition
)
SELECT behind.id, behind.tenant_id, version,
       json_build_object(
           'service_object', behind.id, 'version', version, 'partition', behind.partition,
           'readings', json_agg(json_build_object(
               'reader', behind.id, 'tenant', behind.tenant_id,
               'to_partition', behind.partition, 'provider', provider_id,
               'partition', readings.partition, 'sources', sources))) AS change
  FROM behind
  JOIN readings ON readings.reader = behind.id
 GROUP BY behind.id, behind.tenant_id, version, behind.partition;

INSERT INTO pending_changes (tenant_id, change)
SELECT tenant_id, change
  FROM told_again
 ORDER BY id;
UPDATE definitions
   SET named_by = (SELECT last_value FROM pending_changes_id_seq)
  FROM told_again
 WHERE definitions.service_object = told_again.id
   AND definitions.version = told_again.version;

DROP FUNCTION named_by_groups;
ALTER TABLE service_objects ENABLE TRIGGER USER;
ALTER TABLE service_objects FORCE ROW LEVEL SECURITY;
ALTER TABLE definitions FORCE ROW LEVEL SECURITY;
ALTER TABLE streams FORCE ROW LEVEL SECURITY;
ALTER TABLE graph_edges FORCE ROW LEVEL SECURITY;
ALTER TABLE grants FORCE ROW LEVEL SECURITY;
ALTER TABLE updates FORCE ROW LEVEL SECURITY;
ALTER TABLE pending_changes FORCE ROW LEVEL SECURITY;
ALTER TABLE inputs_from_outside FORCE ROW LEVEL SECURITY;
ALTER TABLE outside_readers FORCE ROW LEVEL SECURITY;
