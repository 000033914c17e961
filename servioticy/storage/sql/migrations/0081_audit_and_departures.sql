-- Who has defined, allowed and revoked what. Triggers write it, in the transaction of what it
-- tells, whoever writes there; no document and no secret is in it.

CREATE TABLE audit (
    tenant_id bigint NOT NULL,
    number bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    actor_tenant bigint,
    actor_token text,
    action text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    PRIMARY KEY (tenant_id, number)
);
COMMENT ON COLUMN audit.tenant_id IS 'whose it is, what is told about';
COMMENT ON COLUMN audit.number IS 'counted for each tenant, without a gap';
COMMENT ON COLUMN audit.actor_tenant IS 'null: the platform by itself, or its operator';
COMMENT ON COLUMN audit.actor_token IS 'the id of the token';
COMMENT ON COLUMN audit.subject IS 'the id of what it was done to';
CREATE INDEX audit_by_age ON audit (at);

CREATE TABLE audit_counts (
    tenant_id bigint PRIMARY KEY,
    number bigint NOT NULL
);
COMMENT ON TABLE audit_counts IS 'the number of each tenant''s last entry';

-- The newest 100,000 entries of a tenant stay.
CREATE FUNCTION note_in_audit(tenant bigint, action text, kind text, subject text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    actor text[] := string_to_array(
        nullif(current_setting('servioticy.actor', true), ''), ' ');
    entry bigint;
BEGIN
    INSERT INTO audit_counts (tenant_id, number)
    VALUES (tenant, 1)
        ON CONFLICT (tenant_id) DO UPDATE
       SET number = audit_counts.number + 1
    RETURNING number INTO entry;
    INSERT INTO audit (tenant_id, number, actor_tenant, actor_token, action, kind, subject)
    VALUES (tenant, entry, actor[1]::bigint, actor[2], action, kind, subject);
    DELETE FROM audit
     WHERE tenant_id = tenant
       AND number <= entry - 100000;
END $$;

CREATE FUNCTION audit_service_object() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'created', 'service object', NEW.id);
    ELSIF NEW.deleted_at IS NOT NULL THEN
        IF OLD.deleted_at IS NULL THEN
            PERFORM note_in_audit(NEW.tenant_id, 'deleted', 'service object', NEW.id);
        END IF;
    ELSIF NEW.newest_version <> OLD.newest_version THEN
        PERFORM note_in_audit(NEW.tenant_id, 'replaced', 'service object', NEW.id);
    ELSIF NEW.version <> OLD.version THEN
        PERFORM note_in_audit(NEW.tenant_id, 'activated', 'service object', NEW.id);
    ELSIF NEW.revision <> OLD.revision THEN
        PERFORM note_in_audit(NEW.tenant_id, 'customised', 'service object', NEW.id);
    END IF;
    IF NEW.public AND (TG_OP = 'INSERT' OR NOT OLD.public) THEN
        PERFORM note_in_audit(NEW.tenant_id, 'made public', 'service object', NEW.id);
    ELSIF TG_OP = 'UPDATE' AND OLD.public AND NOT NEW.public THEN
        PERFORM note_in_audit(NEW.tenant_id, 'made private', 'service object', NEW.id);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION audit_erasure() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_in_audit(NEW.tenant_id, 'erased', 'stream',
                          (NEW.change ->> 'service_object') || '/' || (NEW.change ->> 'stream'));
    RETURN NULL;
END $$;

CREATE FUNCTION audit_token() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'made', 'token', NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'rotated', 'token', NEW.id);
    ELSE
        PERFORM note_in_audit(OLD.tenant_id, 'revoked', 'token', OLD.id);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION audit_subscription() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'created', 'subscription', NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'changed', 'subscription', NEW.id);
    ELSE
        PERFORM note_in_audit(OLD.tenant_id, 'deleted', 'subscription', OLD.id);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION audit_template() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'created', 'template', NEW.id);
    ELSIF NEW.deleted_at IS NOT NULL THEN
        PERFORM note_in_audit(NEW.tenant_id, 'deleted', 'template', NEW.id);
    ELSIF NEW.newest_version <> OLD.newest_version THEN
        PERFORM note_in_audit(NEW.tenant_id, 'replaced', 'template', NEW.id);
    ELSE
        PERFORM note_in_audit(NEW.tenant_id, 'activated', 'template', NEW.id);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION audit_job() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_in_audit(NEW.tenant_id, 'begun', 'job', NEW.id);
    RETURN NULL;
END $$;

CREATE FUNCTION audit_actuation_secret() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_in_audit(NEW.tenant_id, 'rotated', 'actuation secret', NEW.service_object);
    RETURN NULL;
END $$;

CREATE TRIGGER audit_service_object
 AFTER INSERT OR UPDATE OF version, custom_fields, public, deleted_at ON service_objects
   FOR EACH ROW EXECUTE FUNCTION audit_service_object();
CREATE TRIGGER audit_erasure
 AFTER INSERT ON pending_changes
   FOR EACH ROW WHEN (NEW.change ->> 'kind' = 'erasure') EXECUTE FUNCTION audit_erasure();
CREATE TRIGGER audit_token
 AFTER INSERT OR UPDATE OR DELETE ON tokens
   FOR EACH ROW EXECUTE FUNCTION audit_token();
CREATE TRIGGER audit_subscription
 AFTER INSERT OR UPDATE OF document OR DELETE ON subscriptions
   FOR EACH ROW EXECUTE FUNCTION audit_subscription();
CREATE TRIGGER audit_template
 AFTER INSERT OR UPDATE OF version, deleted_at ON templates
   FOR EACH ROW EXECUTE FUNCTION audit_template();
CREATE TRIGGER audit_actuation_secret
 AFTER UPDATE OF secrets ON actuation_callbacks
   FOR EACH ROW EXECUTE FUNCTION audit_actuation_secret();
CREATE TRIGGER audit_job
 AFTER INSERT ON jobs
   FOR EACH ROW EXECUTE FUNCTION audit_job();

-- Nobody writes it but these triggers; a tenant reads its own.

SELECT force_row_level_security('audit');
SELECT force_row_level_security('audit_counts');
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{audit, audit_counts}');
SELECT for_all_tenants('servioticy_platform', 'INSERT', '{audit, audit_counts}');
SELECT for_all_tenants('servioticy_platform', 'UPDATE', '{audit_counts}');
SELECT for_all_tenants('servioticy_platform', 'DELETE', '{audit}');
GRANT SELECT ON audit TO servioticy_api;
GRANT SELECT, INSERT, DELETE ON audit TO servioticy_platform;
GRANT SELECT, INSERT, UPDATE ON audit_counts TO servioticy_platform;

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION note_in_audit OWNER TO servioticy_platform;
ALTER FUNCTION audit_service_object OWNER TO servioticy_platform;
ALTER FUNCTION audit_erasure OWNER TO servioticy_platform;
ALTER FUNCTION audit_token OWNER TO servioticy_platform;
ALTER FUNCTION audit_subscription OWNER TO servioticy_platform;
ALTER FUNCTION audit_template OWNER TO servioticy_platform;
ALTER FUNCTION audit_job OWNER TO servioticy_platform;
ALTER FUNCTION audit_actuation_secret OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;
REVOKE EXECUTE ON FUNCTION note_in_audit FROM PUBLIC;

-- Tenants that an operator deletes: nobody is let in from then on, and all of theirs goes, piece
-- by piece (api/fleets/departures.py). The last to go is the tenant's row: it cannot while
-- anything refers to it.

ALTER TABLE tenants ADD COLUMN deleted_at timestamptz;
COMMENT ON COLUMN tenants.deleted_at IS
    'when an operator deleted it; the row goes when nothing of the tenant is left';

SELECT for_all_tenants('servioticy_platform', 'UPDATE', '{tenants}');
SELECT for_all_tenants('servioticy_platform', 'DELETE',
    '{tenants, audit_counts, membership_marks}');
GRANT UPDATE (deleted_at), DELETE ON tenants TO servioticy_platform;
GRANT DELETE ON audit_counts, membership_marks TO servioticy_platform;
GRANT SELECT ON purge, superseded, pending_changes TO servioticy_api;
