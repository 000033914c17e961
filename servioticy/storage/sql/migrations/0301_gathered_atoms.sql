-- Workflows whose sink is Parquet in a store: atoms are gathered here until their object is written.

CREATE TABLE workflow_objects (
    workflow text NOT NULL REFERENCES workflows ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    version integer NOT NULL,
    hour bigint NOT NULL,
    number integer NOT NULL,
    bytes bigint NOT NULL DEFAULT 0,
    sealed boolean NOT NULL DEFAULT false,
    PRIMARY KEY (workflow, version, hour, number)
);
COMMENT ON TABLE workflow_objects IS
    'objects of stores that atoms are gathered for, or were: of two days';
COMMENT ON COLUMN workflow_objects.bytes IS 'of atoms that are gathered; 0 once it is written';
COMMENT ON COLUMN workflow_objects.sealed IS 'whether it is certain what it has';

CREATE INDEX workflow_objects_by_tenant ON workflow_objects (tenant_id);

CREATE TABLE gathered_atoms (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    workflow text NOT NULL REFERENCES workflows ON DELETE CASCADE,
    version integer NOT NULL,
    hour bigint NOT NULL,
    number integer NOT NULL,
    body text NOT NULL
);
COMMENT ON TABLE gathered_atoms IS 'atoms that have come to such a sink and are in no store yet';
CREATE INDEX gathered_atoms_by_object ON gathered_atoms (workflow, version, hour, number, id);

SELECT force_row_level_security(named)
  FROM unnest('{workflow_objects, gathered_atoms}'::text[]) AS named;
GRANT SELECT, DELETE ON workflow_objects, gathered_atoms TO servioticy_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON workflow_objects, gathered_atoms TO servioticy_delivery;
SELECT for_all_tenants('servioticy_delivery', 'SELECT', '{workflow_objects}');
