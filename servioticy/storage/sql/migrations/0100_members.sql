-- Members: persons of an issuer of tokens who act for a tenant, each with a role. What a role may
-- do stands in servioticy/domain/access.py.

CREATE TABLE members (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    person bytea NOT NULL,
    issuer text NOT NULL,
    subject text NOT NULL,
    name text NOT NULL DEFAULT '',
    email text NOT NULL DEFAULT '',
    role text NOT NULL CHECK (role IN ('viewer', 'operator', 'developer', 'admin')),
    created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN members.person IS 'the SHA-256 that stands for issuer and subject';
COMMENT ON COLUMN members.subject IS 'how the issuer calls the person: `sub` of its tokens';
COMMENT ON COLUMN members.name IS 'for people who look at the list; nothing is decided by it';
CREATE UNIQUE INDEX members_by_person ON members (tenant_id, person);
CREATE INDEX members_by_tenant ON members (tenant_id, id);
COMMENT ON COLUMN audit.actor_token IS 'the id of the token; `member/` and the id of the member';

-- Whoever was let in as a member is looked up anew when the membership is another one, or none.
CREATE FUNCTION tell_member() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR NEW.role <> OLD.role THEN
        PERFORM pg_notify('servioticy_access', 'person ' || encode(OLD.person, 'hex'));
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER tell_member
 AFTER UPDATE OR DELETE ON members
   FOR EACH ROW EXECUTE FUNCTION tell_member();

CREATE FUNCTION audit_member() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'added', 'member', NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'changed', 'member', NEW.id);
    ELSE
        PERFORM note_in_audit(OLD.tenant_id, 'removed', 'member', OLD.id);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_member
 AFTER INSERT OR UPDATE OR DELETE ON members
   FOR EACH ROW EXECUTE FUNCTION audit_member();

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION audit_member OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;

-- Before it is known for whom a person asks, all tenants' members are looked through.
SELECT force_row_level_security('members');
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{members}');
SELECT for_all_tenants('servioticy_delivery', 'SELECT', '{members}');
GRANT SELECT, INSERT, DELETE ON members TO servioticy_api;
GRANT UPDATE (name, email, role) ON members TO servioticy_api;
GRANT SELECT ON members TO servioticy_platform, servioticy_delivery;
