-- What was answered to requests that carried an Idempotency-Key, for a day.
CREATE TABLE idempotency (
    tenant_id bigint NOT NULL REFERENCES tenants,
    key text NOT NULL,
    digest bytea NOT NULL,
    attempt text NOT NULL,
    began_at bigint NOT NULL,
    status integer,
    headers json,
    body bytea,
    PRIMARY KEY (tenant_id, key)
);
COMMENT ON COLUMN idempotency.digest IS 'of the request and its token: the same key may not come with another';
COMMENT ON COLUMN idempotency.attempt IS 'who works on it; who takes over has another one';
COMMENT ON COLUMN idempotency.body IS
    'the answer, readable only with the token that asked: it may tell another token';
COMMENT ON COLUMN idempotency.status IS 'null: not answered yet';
CREATE INDEX idempotency_by_age ON idempotency (tenant_id, began_at);
