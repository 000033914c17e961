-- Programs are begun before they take over: what came of it, for who waits for that.

ALTER TABLE operator_runs
  ADD COLUMN warmed text NOT NULL DEFAULT '';
COMMENT ON COLUMN operator_runs.warmed IS
    'when it was told last what came of its being begun before it takes over, in ms since 1970, and '
    'what was wrong, if anything';

-- Who had a stream forget what its program kept stands in the audit log.

CREATE FUNCTION audit_forgetting() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_in_audit(NEW.tenant_id, 'cleared', 'stream',
                          (NEW.change ->> 'service_object') || '/' || (NEW.change ->> 'stream'));
    RETURN NULL;
END $$;

CREATE TRIGGER audit_forgetting
 AFTER INSERT ON pending_changes
   FOR EACH ROW WHEN (NEW.change ->> 'kind' = 'forgetting') EXECUTE FUNCTION audit_forgetting();

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION audit_forgetting OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;
