-- Claim codes: a device that has no token gets a Service Object and a token for one. Below: ids
-- of tenants for others, and when grants end.

CREATE TABLE claim_codes (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    digest bytea NOT NULL UNIQUE,
    template text REFERENCES templates ON DELETE CASCADE,
    service_object text REFERENCES service_objects ON DELETE CASCADE,
    parameters json NOT NULL,
    allowed text[] NOT NULL,
    device_as text,
    pattern text,
    listed boolean NOT NULL,
    uses integer NOT NULL,
    used integer NOT NULL DEFAULT 0,
    created_at bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT claim_codes_of_one CHECK ((template IS NULL) <> (service_object IS NULL)),
    CONSTRAINT claim_codes_uses CHECK (used <= uses)
);
COMMENT ON COLUMN claim_codes.digest IS 'SHA-256 of its letters; the code itself is nowhere';
COMMENT ON COLUMN claim_codes.parameters IS 'values of parameters that the tenant has given';
COMMENT ON COLUMN claim_codes.allowed IS 'parameters that a device may give';
COMMENT ON COLUMN claim_codes.device_as IS 'the parameter that is the name of the device';
COMMENT ON COLUMN claim_codes.pattern IS 'names of devices that it is for; null: all';
COMMENT ON COLUMN claim_codes.listed IS 'whether it is for those devices only that have a row';
CREATE INDEX claim_codes_by_tenant ON claim_codes (tenant_id, id);
CREATE INDEX claim_codes_by_template ON claim_codes (template) WHERE template IS NOT NULL;
CREATE INDEX claim_codes_by_service_object ON claim_codes (service_object)
 WHERE service_object IS NOT NULL;

CREATE TABLE claims (
    code text NOT NULL REFERENCES claim_codes ON DELETE CASCADE,
    device text NOT NULL,
    tenant_id bigint NOT NULL,
    key_digest bytea,
    salt bytea,
    service_object text,
    token_id text,
    claimed_at bigint,
    PRIMARY KEY (code, device)
);
COMMENT ON TABLE claims IS
    'devices that have claimed by a code; and those it is for, which have not yet';
COMMENT ON COLUMN claims.key_digest IS 'SHA-256 of the secret that the device has made up';
COMMENT ON COLUMN claims.salt IS 'with what the device has sent it makes its token, once more';
CREATE INDEX claims_by_tenant ON claims (tenant_id);

-- What is too old goes without an entry: nobody has done that.
CREATE FUNCTION audit_claim_code() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'made', 'claim code', NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'used', 'claim code', NEW.id);
    ELSIF OLD.expires_at > now() THEN
        PERFORM note_in_audit(OLD.tenant_id, 'revoked', 'claim code', OLD.id);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_claim_code
 AFTER INSERT OR UPDATE OF used OR DELETE ON claim_codes
   FOR EACH ROW EXECUTE FUNCTION audit_claim_code();

SELECT force_row_level_security('claim_codes');
SELECT force_row_level_security('claims');
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{claim_codes}');
GRANT SELECT ON claim_codes TO servioticy_platform;
GRANT SELECT, INSERT, DELETE ON claim_codes TO servioticy_api;
GRANT UPDATE (used) ON claim_codes TO servioticy_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON claims TO servioticy_api;

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION audit_claim_code OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;

-- By what others know a tenant, where it has told them: names can be guessed.
ALTER TABLE tenants
    ADD COLUMN public_id text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', '')
        CONSTRAINT tenants_public_id UNIQUE;

-- Functions are looked at as the owner, who sees all of it for that.
ALTER TABLE grants NO FORCE ROW LEVEL SECURITY;

-- How long what `is_granted` tells of reading holds, in seconds. Null: it is not granted, or the
-- grant has no end.
CREATE FUNCTION granted_for(object text, stream_name text, tenant bigint) RETURNS numeric
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT CASE WHEN bool_and(expires_at IS NOT NULL)
            THEN max(expires_at) / 1000.0 - extract(epoch FROM now()) END
  FROM grants
 WHERE grants.service_object = object
   AND (grants.stream IS NULL OR grants.stream = stream_name)
   AND (grantee IS NULL OR grantee = tenant)
   AND NOT derived_only
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > extract(epoch FROM now()) * 1000)
$$;

-- Service Objects that the tenant is granted as a whole, as `readers` says: for who looks
-- through many.
CREATE FUNCTION granted_objects(tenant bigint) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT service_object
  FROM grants
 WHERE stream IS NULL
   AND (grantee IS NULL OR grantee = tenant)
   AND NOT derived_only
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > extract(epoch FROM now()) * 1000)
$$;

ALTER TABLE grants FORCE ROW LEVEL SECURITY;

SELECT for_all_tenants('servioticy_delivery', 'SELECT', '{grants}');
GRANT SELECT ON grants TO servioticy_delivery;

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION granted_for OWNER TO servioticy_platform;
ALTER FUNCTION granted_objects OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;
