-- The schema as the migrations up to 0017 together make it, to be read. Programs apply the
-- migrations; a test holds this file equal to them. A later one that only adds a table tells it
-- well enough by itself; with the next change of what stands here, or a release, it moves in.
--
-- Every table of a tenant's carries the tenant, and every query names it or stands in the list
-- of exceptions in tests/unit/test_queries_name_the_tenant.py.

-- Tenants

CREATE TABLE tenants (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE tokens (
    digest bytea PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz,
    service_object text
);
COMMENT ON COLUMN tokens.digest IS 'SHA-256 of the token; the token itself is nowhere';
COMMENT ON COLUMN tokens.service_object IS
    'the only Service Object that its holder may act on; null: all of the tenant''s';
CREATE INDEX tokens_by_service_object ON tokens (service_object)
 WHERE service_object IS NOT NULL;

-- Service Objects and their streams

CREATE TABLE service_objects (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    sequence bigint GENERATED ALWAYS AS IDENTITY,
    public boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version integer NOT NULL,
    component text NOT NULL,
    route_partition integer NOT NULL,
    owner_partition integer NOT NULL,
    active_version integer,
    newest_version integer NOT NULL DEFAULT 1,
    revision integer NOT NULL DEFAULT 1,
    custom_fields json,
    deleted_at bigint,
    active_change bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN service_objects.version IS 'version in force for the API';
COMMENT ON COLUMN service_objects.component IS
    'connected component of the stream graph, named by its first Service Object';
COMMENT ON COLUMN service_objects.route_partition IS 'where the API appends its updates (written by the API)';
COMMENT ON COLUMN service_objects.owner_partition IS 'which task computes it (written by the pipeline after the insert)';
COMMENT ON COLUMN service_objects.active_version IS
    'version in force at the owner''s stored progress (written by the pipeline)';
COMMENT ON COLUMN service_objects.newest_version IS 'largest version number ever given';
COMMENT ON COLUMN service_objects.revision IS 'counts changes of any kind: the second part of the ETag';
COMMENT ON COLUMN service_objects.custom_fields IS 'customFields: of the object, not of a version';
COMMENT ON COLUMN service_objects.deleted_at IS
    'when the API deleted it; the row stays for ever, so that no id is used twice';
COMMENT ON COLUMN service_objects.active_change IS
    'number of the change that put active_version in force (written by the pipeline)';
ALTER TABLE tokens ADD FOREIGN KEY (service_object) REFERENCES service_objects;
CREATE INDEX service_objects_by_component ON service_objects (component);
CREATE INDEX service_objects_by_tenant ON service_objects (tenant_id, sequence);

CREATE VIEW readers AS
SELECT service_objects.id AS service_object, tenants.id AS tenant_id
  FROM service_objects
  JOIN tenants ON service_objects.public OR tenants.id = service_objects.tenant_id;
COMMENT ON VIEW readers IS 'which tenants may read which Service Object';

CREATE TABLE definitions (
    service_object text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    version integer NOT NULL,
    tenant_id bigint NOT NULL REFERENCES tenants,
    document json NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (service_object, version)
);
COMMENT ON COLUMN definitions.document IS 'json, not jsonb: the order of keys is the order of computing';

CREATE TABLE streams (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    service_object text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    name text NOT NULL,
    declared boolean NOT NULL DEFAULT true,
    erased_by bigint NOT NULL DEFAULT 0,
    after_erasure bigint,
    stored_as bigint GENERATED ALWAYS AS (coalesce(after_erasure, id)) STORED UNIQUE,
    UNIQUE (service_object, name)
);
COMMENT ON COLUMN streams.declared IS 'whether the version in force for the API has it';
COMMENT ON COLUMN streams.erased_by IS 'number of the last change that erased it (written by the pipeline)';
COMMENT ON COLUMN streams.after_erasure IS
    'taken from the same numbers as id when the stream was last erased; null: it never was';
COMMENT ON COLUMN streams.stored_as IS
    'stream_id of its updates, state, verdicts and usage; subscriptions have its id';

CREATE VIEW readable_streams AS
SELECT streams.id, streams.tenant_id, service_object, name, stored_as
  FROM streams
  JOIN service_objects ON service_objects.id = service_object
 WHERE active_change < 9223372036854775807;
COMMENT ON VIEW readable_streams IS
    'without those of deleted Service Objects (partition.sql, delete), whose rows are still going';

-- Who reads whom

CREATE TABLE graph_edges (
    reader text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    group_name text NOT NULL,
    stream_id bigint NOT NULL REFERENCES streams ON DELETE CASCADE,
    tenant_id bigint NOT NULL REFERENCES tenants,
    PRIMARY KEY (reader, group_name, stream_id)
);
COMMENT ON TABLE graph_edges IS
    'which streams the groups of the version in force for the API read';
COMMENT ON COLUMN graph_edges.reader IS 'the Service Object whose group it is';
COMMENT ON COLUMN graph_edges.tenant_id IS 'of the reader; the stream may be another tenant''s';
CREATE INDEX graph_edges_by_stream ON graph_edges (stream_id);

CREATE TABLE pending_changes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    change json NOT NULL
);
COMMENT ON TABLE pending_changes IS
    'definition changes committed here but perhaps not yet in the log; finished by whoever changes next';

CREATE TABLE subscriptions (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    stream_id bigint NOT NULL REFERENCES streams ON DELETE CASCADE,
    callback text NOT NULL,
    destination text NOT NULL,
    document json NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT subscriptions_of_applications CHECK (callback <> 'internal')
);
COMMENT ON TABLE subscriptions IS 'applications'' wishes to get the updates of a stream';
CREATE INDEX subscriptions_by_stream ON subscriptions (stream_id);
CREATE INDEX subscriptions_by_tenant ON subscriptions (stream_id, tenant_id, created_at, id);
CREATE UNIQUE INDEX subscriptions_pubsub_once
    ON subscriptions (stream_id, destination) WHERE callback = 'pubsub';

-- What the pipeline stores of streams. No foreign keys: a check a row costs too much. Who
-- removes streams removes these rows with them (partition.sql, purge_updates and its
-- neighbours).

CREATE TABLE updates (
    tenant_id bigint NOT NULL,
    stream_id bigint NOT NULL,
    "timestamp" bigint NOT NULL,
    document json NOT NULL,
    version integer NOT NULL,
    log_partition integer NOT NULL,
    log_offset bigint NOT NULL,
    log_position integer NOT NULL,
    PRIMARY KEY (stream_id, "timestamp")
);
COMMENT ON COLUMN updates.log_offset IS 'the source update in the log whose execution tree made this row';
COMMENT ON COLUMN updates.log_position IS 'its place in that tree, breadth first; 0 is the source update';
-- Rows come in that order: block ranges do, at a fraction of the cost of every insert.
CREATE INDEX updates_by_log ON updates USING brin (log_partition, log_offset)
    WITH (pages_per_range = 16, autosummarize = on);

-- What a later update of the same stream, timestamp and batch displaced, until subscribers have it
CREATE TABLE superseded (
    log_partition integer NOT NULL,
    log_offset bigint NOT NULL,
    log_position integer NOT NULL,
    stream_id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    "timestamp" bigint NOT NULL,
    document json NOT NULL,
    version integer NOT NULL,
    PRIMARY KEY (log_partition, log_offset, log_position)
);

CREATE TABLE states (
    stream_id bigint PRIMARY KEY,
    tenant_id bigint NOT NULL,
    state bytea NOT NULL
);
COMMENT ON TABLE states IS
    'what composite streams keep from one computation to the next, such as what they last used';

CREATE TABLE verdicts (
    stream_id bigint NOT NULL,
    verdict text NOT NULL,
    tenant_id bigint NOT NULL,
    count bigint NOT NULL,
    last json NOT NULL,
    PRIMARY KEY (stream_id, verdict)
) WITH (fillfactor = 50);
COMMENT ON COLUMN verdicts.last IS 'the last computation that ended so: trigger, timestamp, version, message';

-- What each composite stream's code has used
CREATE TABLE usage (
    stream_id bigint PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants (id),
    processor_us bigint NOT NULL
);

-- What is deleted or erased and still to be removed
CREATE TABLE purge (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    log_partition integer NOT NULL,
    tenant_id bigint NOT NULL,
    service_object text UNIQUE,
    stored_as bigint UNIQUE,
    reached bigint NOT NULL DEFAULT -9223372036854775808,
    CHECK (num_nonnulls(service_object, stored_as) = 1)
);
COMMENT ON TABLE purge IS
    'what nobody can read any more and is still to be removed: a deleted Service Object, or what '
    'is stored under the number of a stream that was erased or deleted';
COMMENT ON COLUMN purge.log_partition IS 'whose task removes it';
COMMENT ON COLUMN purge.reached IS
    'updates up to this timestamp are removed: what follows is found without passing them again';
CREATE INDEX purge_by_partition ON purge (log_partition, stored_as, id);

-- What Web Objects are asked to do, and how it goes

CREATE TABLE actuations (
    id text PRIMARY KEY,
    sequence bigint GENERATED ALWAYS AS IDENTITY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    service_object text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    name text NOT NULL,
    parameters text NOT NULL,
    status text NOT NULL,
    reports jsonb NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
COMMENT ON TABLE actuations IS 'the newest of each Service Object (actuations.sql, submit)';
COMMENT ON COLUMN actuations.name IS 'of the action, as the document in force spelt it';
COMMENT ON COLUMN actuations.status IS 'what was said of it last';
COMMENT ON COLUMN actuations.reports IS 'what was said of it, and when, oldest first';
CREATE INDEX actuations_by_service_object ON actuations (service_object, sequence);

-- Streams that somebody has searched, and columns of their updates: made where they are searched,
-- by who searches. The pipeline knows nothing of them until an update comes that is late.

CREATE TABLE searched_streams (
    stream_id bigint PRIMARY KEY,
    tenant_id bigint NOT NULL,
    changes bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN searched_streams.stream_id IS 'stored_as of the stream';
COMMENT ON COLUMN searched_streams.changes IS
    'grows with each block and each late update: what was read before may not be stored after';

CREATE TABLE search_blocks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream_id bigint NOT NULL REFERENCES searched_streams ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    after bigint NOT NULL,
    upto bigint NOT NULL,
    timestamps bytea NOT NULL,
    UNIQUE (stream_id, upto)
);
COMMENT ON TABLE search_blocks IS
    'all updates with timestamps larger than after, up to upto; no two of a stream overlap';
COMMENT ON COLUMN search_blocks.timestamps IS 'of these updates, 8 bytes each';
ALTER TABLE search_blocks ALTER COLUMN timestamps SET STORAGE EXTERNAL;

CREATE TABLE search_columns (
    block_id bigint NOT NULL REFERENCES search_blocks ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    subject text NOT NULL,
    bounds double precision[] NOT NULL,
    codes bytea NOT NULL,
    PRIMARY KEY (block_id, subject)
);
COMMENT ON TABLE search_columns IS 'of the updates of a block what searches of one kind go by';
COMMENT ON COLUMN search_columns.subject IS 'the kind of condition and the channel: number:x';
COMMENT ON COLUMN search_columns.codes IS 'api/search/columns.py';
ALTER TABLE search_columns ALTER COLUMN codes SET STORAGE EXTERNAL;

-- How far the log is stored

CREATE TABLE progress (
    log_partition integer PRIMARY KEY,
    next_offset bigint NOT NULL,
    emitted_offset bigint NOT NULL
);
COMMENT ON COLUMN progress.next_offset IS 'everything in the log before it is stored';
COMMENT ON COLUMN progress.emitted_offset IS 'everything made from the log before it is emitted and acknowledged';

CREATE TABLE forwarded (
    to_partition integer NOT NULL,
    from_partition integer NOT NULL,
    next_offset bigint NOT NULL,
    PRIMARY KEY (to_partition, from_partition)
);
COMMENT ON TABLE forwarded IS 'records forwarded from a partition are taken once, in order';

-- Records of the log that are computed later than at their place
CREATE TABLE put_off (
    log_partition integer NOT NULL,
    log_offset bigint NOT NULL,
    tenant_id bigint NOT NULL,
    service_object text NOT NULL,
    record bytea NOT NULL,
    taken_up boolean NOT NULL DEFAULT false,
    PRIMARY KEY (log_partition, log_offset)
);
COMMENT ON COLUMN put_off.record IS 'as it stands in the log';
COMMENT ON COLUMN put_off.taken_up IS
    'computed and stored; the row stays until all that came of it is emitted';
CREATE INDEX put_off_waiting ON put_off (log_partition, tenant_id, log_offset) WHERE NOT taken_up;
-- It is read once and goes: to compress it would cost more than it saves.
ALTER TABLE put_off ALTER COLUMN record SET STORAGE EXTERNAL;

-- Which log that is

CREATE TABLE log_identity (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    topic text NOT NULL,
    topic_id text NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN log_identity.topic_id IS 'given by Kafka: a topic made anew has another one';

CREATE TABLE log_losses (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    log_partition integer NOT NULL,
    topic_id text NOT NULL,
    stored_offset bigint NOT NULL,
    log_first bigint NOT NULL,
    log_end bigint NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE log_losses IS
    'where stored progress and the log did not belong together, and an operator accepted it';
