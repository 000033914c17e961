-- The first schema. Every table carries its tenant, so that row level security can be
-- forced later without changing tables or queries.

CREATE TABLE tenants (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE tokens (
    digest bytea PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);
COMMENT ON COLUMN tokens.digest IS 'SHA-256 of the token; the token itself is nowhere';

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
    active_version integer
);
COMMENT ON COLUMN service_objects.version IS 'newest version accepted by the API';
COMMENT ON COLUMN service_objects.component IS
    'connected component of the stream graph, named by its first Service Object';
COMMENT ON COLUMN service_objects.route_partition IS 'where the API appends its updates (written by the API)';
COMMENT ON COLUMN service_objects.owner_partition IS 'which task computes it (written by the pipeline after the insert)';
COMMENT ON COLUMN service_objects.active_version IS
    'version in force at the owner''s stored progress (written by the pipeline)';
CREATE INDEX service_objects_by_component ON service_objects (component);
CREATE INDEX service_objects_by_tenant ON service_objects (tenant_id, sequence);

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
    UNIQUE (service_object, name)
);

CREATE TABLE subscriptions (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    stream_id bigint NOT NULL REFERENCES streams ON DELETE CASCADE,
    callback text NOT NULL,
    destination text NOT NULL,
    document json NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX subscriptions_by_stream ON subscriptions (stream_id);
CREATE UNIQUE INDEX subscriptions_pubsub_once
    ON subscriptions (stream_id, destination) WHERE callback = 'pubsub';

CREATE TABLE updates (
    tenant_id bigint NOT NULL,
    stream_id bigint NOT NULL REFERENCES streams ON DELETE CASCADE,
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
CREATE INDEX updates_by_log ON updates (log_partition, log_offset);

CREATE TABLE last_updates (
    stream_id bigint PRIMARY KEY REFERENCES streams ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    "timestamp" bigint NOT NULL,
    document json NOT NULL,
    version integer NOT NULL
);

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

CREATE TABLE verdicts (
    stream_id bigint NOT NULL REFERENCES streams ON DELETE CASCADE,
    verdict text NOT NULL,
    tenant_id bigint NOT NULL,
    count bigint NOT NULL,
    last json NOT NULL,
    PRIMARY KEY (stream_id, verdict)
);
COMMENT ON COLUMN verdicts.last IS 'the last computation that ended so: trigger, timestamp, version, message';

CREATE TABLE pending_changes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    change json NOT NULL
);
COMMENT ON TABLE pending_changes IS
    'definition changes committed here but perhaps not yet in the log; finished by whoever changes next';
