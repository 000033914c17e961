-- Workflows: documents, the queues between their procedures, and what is told of them.

CREATE TABLE workflows (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    version integer NOT NULL DEFAULT 1,
    subscription text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
COMMENT ON COLUMN workflows.subscription IS
    'that brings the updates of the stream that is its source; null: its atoms come by HTTP';
CREATE INDEX workflows_by_tenant ON workflows (tenant_id, id);

CREATE TABLE workflow_versions (
    workflow text NOT NULL REFERENCES workflows ON DELETE CASCADE,
    version integer NOT NULL,
    tenant_id bigint NOT NULL,
    content json NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (workflow, version)
);

CREATE TABLE atoms (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    workflow text NOT NULL,
    version integer NOT NULL,
    step integer NOT NULL,
    visible_at bigint NOT NULL,
    entered_at bigint NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    taken_by bigint,
    body text NOT NULL
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE atoms IS
    'the queues: atoms that wait for a step of the version by which they came in';
COMMENT ON COLUMN atoms.step IS
    'a procedure by its number in the order of the document; behind the last one the sink';
COMMENT ON COLUMN atoms.visible_at IS
    'when it may be taken, in milliseconds since 1970: who takes it puts that off';
COMMENT ON COLUMN atoms.entered_at IS 'when the atom that it was made of came into the workflow';
COMMENT ON COLUMN atoms.taken_by IS 'the instance that took it last; it alone may finish it';
CREATE INDEX atoms_waiting ON atoms (tenant_id, workflow, version, step, visible_at, id);

-- How much waits, without counting it: instances that store at once add to shards of their own.
CREATE TABLE atom_counts (
    tenant_id bigint NOT NULL,
    workflow text NOT NULL,
    version integer NOT NULL,
    step integer NOT NULL,
    shard integer NOT NULL,
    atoms bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (tenant_id, workflow, version, step, shard)
) WITH (fillfactor = 50);
COMMENT ON TABLE atom_counts IS 'how many atoms, and bytes of them, are in each queue: their sum';

CREATE FUNCTION count_atoms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO atom_counts AS counted (tenant_id, workflow, version, step, shard, atoms, bytes)
    SELECT tenant_id, workflow, version, step, pg_backend_pid() % 8,
           CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END,
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * sum(octet_length(body))
      FROM changed
     GROUP BY tenant_id, workflow, version, step
     ORDER BY tenant_id, workflow, version, step
        ON CONFLICT (tenant_id, workflow, version, step, shard) DO UPDATE
       SET atoms = counted.atoms + excluded.atoms,
           bytes = counted.bytes + excluded.bytes;
    RETURN NULL;
END $$;
CREATE TRIGGER count_atoms_that_come AFTER INSERT ON atoms
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_atoms();
CREATE TRIGGER count_atoms_that_go AFTER DELETE ON atoms
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_atoms();

CREATE TABLE dead_atoms (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    workflow text NOT NULL REFERENCES workflows ON DELETE CASCADE,
    version integer NOT NULL,
    step integer NOT NULL,
    entered_at bigint NOT NULL,
    died_at bigint NOT NULL,
    attempts integer NOT NULL,
    reason text NOT NULL,
    body text NOT NULL
);
COMMENT ON TABLE dead_atoms IS 'atoms that a procedure or the sink has failed on for good';
CREATE INDEX dead_atoms_by_workflow ON dead_atoms (workflow, id);
CREATE INDEX dead_atoms_by_age ON dead_atoms (died_at);

CREATE TABLE collected_atoms (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    workflow text NOT NULL REFERENCES workflows ON DELETE CASCADE,
    entered_at bigint NOT NULL,
    collected_at bigint NOT NULL,
    body text NOT NULL
);
COMMENT ON TABLE collected_atoms IS 'the newest that came to a sink that collects';
CREATE INDEX collected_atoms_by_workflow ON collected_atoms (workflow, id);
CREATE INDEX collected_atoms_by_age ON collected_atoms (collected_at);

CREATE TABLE workflow_instances (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    workflow text NOT NULL,
    version integer NOT NULL,
    step integer NOT NULL,
    began_at bigint NOT NULL,
    ends_at bigint NOT NULL
);
COMMENT ON TABLE workflow_instances IS 'who takes atoms now; one that was killed until its end';
COMMENT ON COLUMN workflow_instances.ends_at IS
    'then it gives back what it holds: before that what it has taken is shown to nobody else';
CREATE INDEX workflow_instances_by_workflow ON workflow_instances (tenant_id, workflow);

CREATE TABLE workflow_hours (
    tenant_id bigint NOT NULL,
    workflow text NOT NULL REFERENCES workflows ON DELETE CASCADE,
    step text NOT NULL,
    hour bigint NOT NULL,
    atoms bigint NOT NULL DEFAULT 0,
    made bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    dead bigint NOT NULL DEFAULT 0,
    processor_us bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (workflow, step, hour)
);
CREATE INDEX workflow_hours_by_age ON workflow_hours (hour);
COMMENT ON TABLE workflow_hours IS 'what each step has done in an hour; some seconds late';

SELECT force_row_level_security(named)
  FROM unnest('{workflows, workflow_versions, atoms, atom_counts, dead_atoms, collected_atoms,
                workflow_instances, workflow_hours}'::text[]) AS named;

GRANT SELECT, INSERT, UPDATE, DELETE
   ON workflows, workflow_versions, atoms, atom_counts, dead_atoms, collected_atoms, workflow_hours
   TO servioticy_api;
GRANT SELECT, DELETE ON workflow_instances TO servioticy_api;

-- Between tenants: what is old goes.
SELECT for_all_tenants('servioticy_platform', command,
                       '{dead_atoms, collected_atoms, workflow_hours}')
  FROM unnest('{SELECT, DELETE}'::text[]) AS command;
GRANT SELECT, DELETE ON dead_atoms, collected_atoms, workflow_hours TO servioticy_platform;

-- Delivery brings the updates of streams; the program `functions` has its role, too.
SELECT for_all_tenants('servioticy_delivery', command,
    '{workflows, workflow_versions, atoms, atom_counts, dead_atoms, collected_atoms,
      workflow_instances, workflow_hours}')
  FROM unnest('{SELECT, INSERT, UPDATE, DELETE}'::text[]) AS command;
GRANT SELECT ON workflows, workflow_versions TO servioticy_delivery;
GRANT SELECT, INSERT, UPDATE, DELETE
   ON atoms, atom_counts, dead_atoms, collected_atoms, workflow_instances, workflow_hours
   TO servioticy_delivery;

-- The audit log tells of what defines a workflow, not of what is worked on.
CREATE FUNCTION audit_workflow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'created', 'workflow', NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'replaced', 'workflow', NEW.id);
    ELSE
        PERFORM note_in_audit(OLD.tenant_id, 'deleted', 'workflow', OLD.id);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_workflow
 AFTER INSERT OR UPDATE OF version OR DELETE ON workflows
   FOR EACH ROW EXECUTE FUNCTION audit_workflow();

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION audit_workflow OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;
