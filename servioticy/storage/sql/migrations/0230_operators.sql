-- Operators: programs of tenants' own, in versions, whom they may be used by, and how they run.

CREATE TABLE operators (
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL,
    last_version integer NOT NULL,
    PRIMARY KEY (tenant_id, name)
);
COMMENT ON TABLE operators IS 'names of programs that tenants have pushed, once and for all';
COMMENT ON COLUMN operators.last_version IS 'no number is given twice, though versions are removed';

CREATE TABLE operator_versions (
    tenant_id bigint NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    manifest json NOT NULL,
    digest text NOT NULL,
    archive bytea NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, name, version),
    FOREIGN KEY (tenant_id, name) REFERENCES operators ON DELETE CASCADE
);
ALTER TABLE operator_versions ALTER COLUMN archive SET STORAGE EXTERNAL;
COMMENT ON TABLE operator_versions IS 'programs as they were pushed';
COMMENT ON COLUMN operator_versions.digest IS 'of the files in the archive (operators/archives.py)';

CREATE TABLE operator_grants (
    tenant_id bigint NOT NULL,
    name text NOT NULL,
    grantee bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, name, grantee),
    FOREIGN KEY (tenant_id, name) REFERENCES operators ON DELETE CASCADE
);
COMMENT ON TABLE operator_grants IS 'which other tenants may compute by a program, in any version';
CREATE INDEX operator_grants_by_grantee ON operator_grants (grantee);

CREATE TABLE operator_runs (
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL,
    version integer NOT NULL,
    node text NOT NULL,
    state text NOT NULL,
    restarts integer NOT NULL,
    problem text NOT NULL,
    printed text NOT NULL,
    told_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, name, version, node)
);
COMMENT ON TABLE operator_runs IS
    'how programs are on each node, for whom they run; the last word of it, for an hour';
COMMENT ON COLUMN operator_runs.name IS 'of another tenant''s OWNER/NAME';

SELECT force_row_level_security(named)
  FROM unnest('{operators, operator_versions, operator_grants, operator_runs}'::text[]) AS named;

GRANT SELECT, INSERT, UPDATE, DELETE ON operators, operator_versions, operator_grants
   TO servioticy_api;
GRANT SELECT, DELETE ON operator_runs TO servioticy_api;
SELECT for_all_tenants('servioticy_platform', 'SELECT',
    '{operators, operator_versions, operator_grants}');
GRANT SELECT ON operators, operator_versions, operator_grants TO servioticy_platform;
SELECT for_all_tenants('servioticy_pipeline', 'SELECT',
    '{operator_versions, operator_grants, operator_runs}');
SELECT for_all_tenants('servioticy_pipeline', 'INSERT', '{operator_runs}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE', '{operator_runs}');
SELECT for_all_tenants('servioticy_pipeline', 'DELETE', '{operator_runs}');
GRANT SELECT ON operator_versions, operator_grants TO servioticy_pipeline;
GRANT SELECT, INSERT, UPDATE, DELETE ON operator_runs TO servioticy_pipeline;

-- The audit log tells of versions that were pushed and removed, and to whom they are granted.

CREATE FUNCTION audit_operator() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'pushed', 'operator', NEW.name || '@' || NEW.version);
    ELSE
        PERFORM note_in_audit(OLD.tenant_id, 'removed', 'operator', OLD.name || '@' || OLD.version);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_operator
 AFTER INSERT OR DELETE ON operator_versions
   FOR EACH ROW EXECUTE FUNCTION audit_operator();

CREATE FUNCTION audit_operator_grant() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_in_audit(OLD.tenant_id, 'revoked', 'operator', OLD.name);
    ELSE
        PERFORM note_in_audit(NEW.tenant_id, 'granted', 'operator', NEW.name);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_operator_grant
 AFTER INSERT OR UPDATE OR DELETE ON operator_grants
   FOR EACH ROW EXECUTE FUNCTION audit_operator_grant();

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION audit_operator OWNER TO servioticy_platform;
ALTER FUNCTION audit_operator_grant OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;
