-- What an operator lets a tenant have that is not what every tenant may have, and how much is
-- stored of each.

CREATE TABLE quotas (
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL,
    most bigint NOT NULL CHECK (most >= 0),
    PRIMARY KEY (tenant_id, name)
);
COMMENT ON COLUMN quotas.name IS 'as in servioticy/domain/quotas.py';

CREATE TABLE stored_amounts (
    tenant_id bigint PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    bytes bigint NOT NULL
);
COMMENT ON TABLE stored_amounts IS
    'how many bytes of updates are stored of a tenant: some seconds late, and about';
