-- Fleets: documents with parameters, and the Service Objects that are made from them.

CREATE TABLE templates (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    version integer NOT NULL DEFAULT 1,
    newest_version integer NOT NULL DEFAULT 1,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    deleted_at bigint
);
COMMENT ON COLUMN templates.version IS 'the version in force, which its objects follow';
COMMENT ON COLUMN templates.deleted_at IS
    'the row goes later: a job that was accepted in the same moment still finds it';
CREATE INDEX templates_by_tenant ON templates (tenant_id, id);

CREATE TABLE template_versions (
    template text NOT NULL REFERENCES templates ON DELETE CASCADE,
    version integer NOT NULL,
    tenant_id bigint NOT NULL,
    content json NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (template, version)
);

CREATE TABLE template_objects (
    service_object text PRIMARY KEY REFERENCES service_objects ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    template text NOT NULL REFERENCES templates,
    version integer NOT NULL,
    parameters json NOT NULL
);
COMMENT ON COLUMN template_objects.version IS
    'of the template, that the document in force of the Service Object was made from';
CREATE INDEX template_objects_by_template ON template_objects (template, service_object);

CREATE FUNCTION leave_template() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM template_objects
     WHERE service_object = NEW.id
       AND tenant_id = NEW.tenant_id;
    RETURN NULL;
END $$;

CREATE TRIGGER leave_template
 AFTER UPDATE OF deleted_at ON service_objects
   FOR EACH ROW WHEN (NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION leave_template();
