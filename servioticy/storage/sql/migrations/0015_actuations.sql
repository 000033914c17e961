-- What Web Objects are asked to do, and how it goes.

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

-- Of the subscriptions to a public stream a tenant finds its own without passing the others'.
CREATE INDEX subscriptions_by_tenant ON subscriptions (stream_id, tenant_id, created_at, id);
