-- Sessions of the console: whoever has shown a token once goes on with a cookie.

CREATE TABLE console_sessions (
    digest bytea PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    token bytea NOT NULL,
    known_by bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE console_sessions IS 'the newest of a tenant, servioticy.identity.console_sessions.MOST of them';
COMMENT ON COLUMN console_sessions.digest IS 'the SHA-256 of what the cookie holds';
COMMENT ON COLUMN console_sessions.token IS
    'what was shown, sealed with what the cookie holds: nobody reads it here';
COMMENT ON COLUMN console_sessions.known_by IS 'the SHA-256 by which delivery knows who was let in';
CREATE INDEX console_sessions_by_tenant ON console_sessions (tenant_id, created_at);

-- Sockets that were opened with a session end with it.
CREATE FUNCTION tell_console_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('servioticy_access', 'token ' || encode(OLD.known_by, 'hex'));
    RETURN NULL;
END $$;

CREATE TRIGGER tell_console_session
 AFTER DELETE ON console_sessions
   FOR EACH ROW EXECUTE FUNCTION tell_console_session();

-- Before it is known who asks, all tenants' sessions are looked through.
SELECT force_row_level_security('console_sessions');
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{console_sessions}');
SELECT for_all_tenants('servioticy_platform', 'DELETE', '{console_sessions}');
SELECT for_all_tenants('servioticy_delivery', 'SELECT', '{console_sessions}');
GRANT SELECT, INSERT, DELETE ON console_sessions TO servioticy_api;
GRANT SELECT, DELETE ON console_sessions TO servioticy_platform;
GRANT SELECT ON console_sessions TO servioticy_delivery;
