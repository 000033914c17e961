-- Sign-ins at an issuer: what a browser keeps of one is signed, and each lets somebody in once.

CREATE TABLE console_keys (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    content bytea NOT NULL
);
COMMENT ON TABLE console_keys IS
    'one row: by which what browsers keep of sign-ins is signed, made by whoever needs it first';
GRANT SELECT, INSERT ON console_keys TO servioticy_api;

CREATE TABLE console_sign_ins (
    digest bytea PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    ends_at timestamptz NOT NULL
);
COMMENT ON TABLE console_sign_ins IS
    'that have let somebody in, until the browser''s cookie counts no more: the newest of a tenant, servioticy.identity.sign_ins.MOST of them';
COMMENT ON COLUMN console_sign_ins.digest IS 'the SHA-256 of the secret that the cookie had';
CREATE INDEX console_sign_ins_by_tenant ON console_sign_ins (tenant_id, ends_at);

-- Before it is known who asks, all tenants' are looked through.
SELECT force_row_level_security('console_sign_ins');
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{console_sign_ins}');
GRANT SELECT, INSERT, DELETE ON console_sign_ins TO servioticy_api;
GRANT SELECT ON console_sign_ins TO servioticy_platform;
