-- A grant that goes with its Service Object, or with the tenant that it was for, is told of as one
-- that was revoked is.

CREATE FUNCTION audit_end_of_grant() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_grant_in_audit(OLD.tenant_id, OLD.grantee, 'ended', OLD.id);
    RETURN NULL;
END $$;

CREATE TRIGGER audit_end_of_grant
 AFTER DELETE ON grants
   FOR EACH ROW WHEN (OLD.revoked_at IS NULL)
EXECUTE FUNCTION audit_end_of_grant();

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION audit_end_of_grant OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;
