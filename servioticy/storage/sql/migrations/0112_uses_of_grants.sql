-- What a grant is used for: both sides find it hour by hour, with the grant, and once a day in
-- their audit logs.

ALTER TABLE usage_hours ADD COLUMN grant_id text NOT NULL DEFAULT '';
COMMENT ON COLUMN usage_hours.grant_id IS
    'by which the provider''s stream was read; empty: it is the tenant''s own, or public';
ALTER TABLE usage_hours
    DROP CONSTRAINT usage_hours_pkey,
    ADD PRIMARY KEY (tenant_id, hour, service_object, stream, provider_id, grant_id);

ALTER TABLE grants ADD COLUMN first_used bigint, ADD COLUMN last_used bigint;
COMMENT ON COLUMN grants.last_used IS 'in milliseconds since 1970: to the minute, and some seconds late';

CREATE TABLE ended_grants (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    service_object text NOT NULL,
    stream text,
    grantee bigint,
    derived_only boolean NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    first_used bigint,
    last_used bigint,
    ended_at bigint NOT NULL
);
COMMENT ON TABLE ended_grants IS
    'grants that composites read by no more: of a tenant the last 1,000, for as long as usage_hours';
COMMENT ON COLUMN ended_grants.ended_at IS 'where the log said so, in milliseconds since 1970';
CREATE INDEX ended_grants_by_service_object ON ended_grants (service_object, ended_at);
CREATE INDEX ended_grants_by_tenant ON ended_grants (tenant_id, ended_at);
CREATE INDEX ended_grants_by_age ON ended_grants (ended_at);

CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql STABLE AS $$
SELECT floor(extract(epoch FROM now()) * 1000)::bigint
$$;

-- Of a tenant that is still there: others' grants go with them.
CREATE FUNCTION keep_ended_grant() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO ended_grants (id, tenant_id, service_object, stream, grantee, derived_only,
                              created_at, expires_at, first_used, last_used, ended_at)
    SELECT OLD.id, OLD.tenant_id, OLD.service_object, OLD.stream, OLD.grantee, OLD.derived_only,
           OLD.created_at, OLD.expires_at, OLD.first_used, OLD.last_used, now_ms()
      FROM tenants
     WHERE tenants.id = OLD.tenant_id;
    DELETE FROM ended_grants
     WHERE id IN (SELECT id
                    FROM ended_grants
                   WHERE tenant_id = OLD.tenant_id
                   ORDER BY ended_at DESC, id
                  OFFSET 1000);
    RETURN NULL;
END $$;

CREATE TRIGGER keep_ended_grant
 AFTER DELETE ON grants
   FOR EACH ROW EXECUTE FUNCTION keep_ended_grant();

-- Functions are looked at as the owner, who sees all of it for that.
ALTER TABLE grants NO FORCE ROW LEVEL SECURITY;

-- By which grant a tenant reads a stream of another, or derives from it. Of several the one that
-- says most exactly who and what. No row: there is none, as where the stream is public. What was
-- used until a grant ended comes to the accounts within the minute.
CREATE FUNCTION grant_used(object text, stream_name text, tenant bigint, deriving boolean)
RETURNS TABLE (grant_id text, to_note boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT id, last_used IS NULL OR last_used < now_ms() - 60000
  FROM (SELECT id, stream, grantee, derived_only, created_at, last_used, false AS ended
          FROM grants
         WHERE grants.service_object = object
           AND (active OR NOT deriving)
         UNION ALL
        SELECT id, stream, grantee, derived_only, created_at, last_used, true AS ended
          FROM ended_grants
         WHERE ended_grants.service_object = object
           AND ended_at > now_ms() - 60000) AS given
 WHERE (stream IS NULL OR stream = stream_name)
   AND (grantee IS NULL OR grantee = tenant)
   AND (deriving OR NOT derived_only)
 ORDER BY ended, grantee IS NULL, stream IS NULL, created_at, id
 LIMIT 1
$$;

ALTER TABLE grants FORCE ROW LEVEL SECURITY;

CREATE FUNCTION note_grant_used(used text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE grants
       SET first_used = coalesce(first_used, now_ms()), last_used = now_ms()
     WHERE id = used
       AND (last_used IS NULL OR last_used < now_ms() - 60000);
    UPDATE ended_grants
       SET first_used = coalesce(first_used, now_ms()), last_used = now_ms()
     WHERE id = used
       AND (last_used IS NULL OR last_used < now_ms() - 60000);
END $$;

-- Both sides, as far as they are still there; in their order, so that of two that tell both sides
-- one waits for the other. To the receiver whatever becomes of it is the giver's doing: else grants
-- that expire would fill the part of the platform.
CREATE FUNCTION note_grant_in_audit(giver bigint, receiver bigint, action text, subject text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    side bigint;
BEGIN
    FOR side IN SELECT id FROM tenants WHERE id IN (giver, receiver) ORDER BY id LOOP
        PERFORM note_all_in_audit(side, action, 'grant', ARRAY[subject],
                                  CASE side WHEN giver THEN 0 ELSE giver END);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION audit_grant() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_grant_in_audit(NEW.tenant_id, NEW.grantee,
                                CASE TG_OP WHEN 'INSERT' THEN 'made' ELSE 'revoked' END, NEW.id);
    RETURN NULL;
END $$;

-- Once a day, at its first use in it.
CREATE FUNCTION audit_use_of_grant() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_grant_in_audit(NEW.tenant_id, NEW.grantee, 'used', NEW.id);
    RETURN NULL;
END $$;

CREATE TRIGGER audit_use_of_grant
 AFTER UPDATE OF last_used ON grants
   FOR EACH ROW
  WHEN (OLD.last_used IS NULL OR OLD.last_used / 86400000 < NEW.last_used / 86400000)
EXECUTE FUNCTION audit_use_of_grant();
CREATE TRIGGER audit_use_of_grant
 AFTER UPDATE OF last_used ON ended_grants
   FOR EACH ROW
  WHEN (OLD.last_used IS NULL OR OLD.last_used / 86400000 < NEW.last_used / 86400000)
EXECUTE FUNCTION audit_use_of_grant();

SELECT force_row_level_security('ended_grants');
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{ended_grants}');
SELECT for_all_tenants('servioticy_platform', 'INSERT', '{ended_grants}');
SELECT for_all_tenants('servioticy_platform', 'UPDATE', '{grants, ended_grants}');
SELECT for_all_tenants('servioticy_platform', 'DELETE', '{ended_grants}');
GRANT UPDATE (first_used, last_used) ON grants TO servioticy_platform;
GRANT SELECT, INSERT, UPDATE, DELETE ON ended_grants TO servioticy_platform;

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION keep_ended_grant OWNER TO servioticy_platform;
ALTER FUNCTION grant_used OWNER TO servioticy_platform;
ALTER FUNCTION note_grant_used OWNER TO servioticy_platform;
ALTER FUNCTION note_grant_in_audit OWNER TO servioticy_platform;
ALTER FUNCTION audit_use_of_grant OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;
REVOKE EXECUTE ON FUNCTION grant_used, note_grant_used, note_grant_in_audit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION grant_used, note_grant_used
   TO servioticy_pipeline, servioticy_delivery;
