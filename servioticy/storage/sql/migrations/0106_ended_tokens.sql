-- Tokens that have ended go, some days later.

CREATE INDEX tokens_by_end ON tokens (expires_at)
 WHERE expires_at IS NOT NULL;

-- What has ended goes without an entry: nobody has revoked that.
CREATE OR REPLACE FUNCTION audit_tokens() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_all_in_audit(tenant_id, TG_ARGV[0], 'token', ids)
       FROM (SELECT tenant_id, array_agg(id ORDER BY id) AS ids
               FROM changed
              WHERE TG_OP <> 'DELETE' OR expires_at IS NULL OR expires_at > now()
              GROUP BY tenant_id
              ORDER BY tenant_id) AS of_tenants;
    RETURN NULL;
END $$;

-- Those that `GET /tokens` shows: not what Service Objects were born with, or devices have claimed.
CREATE FUNCTION is_listed(token tokens) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
SELECT token.name <> '' OR token.service_object IS NULL
$$;

SELECT for_all_tenants('servioticy_platform', 'DELETE', '{tokens}');
GRANT DELETE ON tokens TO servioticy_platform;
