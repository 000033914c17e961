-- Workflows: how many files are kept in mind, memory that procedures held, and programs that
-- tenants have run as procedures.

ALTER TABLE workflow_looks ADD COLUMN known bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN workflow_looks.known IS 'how many of its files are kept in mind';
ALTER TABLE workflow_looks NO FORCE ROW LEVEL SECURITY;
ALTER TABLE workflow_files NO FORCE ROW LEVEL SECURITY;
UPDATE workflow_looks
   SET known = (SELECT count(*) FROM workflow_files
                 WHERE workflow_files.workflow = workflow_looks.workflow);
ALTER TABLE workflow_looks FORCE ROW LEVEL SECURITY;
ALTER TABLE workflow_files FORCE ROW LEVEL SECURITY;
CREATE INDEX workflow_looks_by_tenant ON workflow_looks (tenant_id);

ALTER TABLE workflow_hours ADD COLUMN mebibyte_ms bigint NOT NULL DEFAULT 0;
CREATE INDEX workflow_hours_by_tenant ON workflow_hours (tenant_id, hour);
COMMENT ON COLUMN workflow_hours.mebibyte_ms IS
    'memory that the step may have, for as long as it was worked on: MiB times milliseconds';

-- The program `functions` runs programs of tenants', as the pipeline does.
SELECT for_all_tenants('servioticy_delivery', 'SELECT',
    '{operator_versions, operator_grants, operator_runs}');
SELECT for_all_tenants('servioticy_delivery', command, '{operator_runs}')
  FROM unnest('{INSERT, UPDATE, DELETE}'::text[]) AS command;
GRANT SELECT ON operator_versions, operator_grants TO servioticy_delivery;
GRANT SELECT, INSERT, UPDATE, DELETE ON operator_runs TO servioticy_delivery;
