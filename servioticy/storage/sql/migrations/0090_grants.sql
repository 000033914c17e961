-- Grants: what a tenant lets others do with its streams. The views are the rule of
-- servioticy/domain/access.py for SQL.

CREATE TABLE grants (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    service_object text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    stream text,
    grantee bigint REFERENCES tenants ON DELETE CASCADE,
    derived_only boolean NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    active boolean NOT NULL DEFAULT false
);
COMMENT ON COLUMN grants.stream IS 'null: each stream of the Service Object, and its document';
COMMENT ON COLUMN grants.grantee IS 'null: every tenant';
COMMENT ON COLUMN grants.derived_only IS 'composites may read it; nobody gets its updates';
COMMENT ON COLUMN grants.revoked_at IS
    'when the API revoked it; the row goes where the log says so';
COMMENT ON COLUMN grants.active IS
    'whether composites read by it at the owner''s stored progress (written by the pipeline)';
CREATE INDEX grants_by_service_object ON grants (service_object);
CREATE INDEX grants_by_tenant ON grants (tenant_id, id);
CREATE INDEX grants_by_grantee ON grants (grantee, id) WHERE grantee IS NOT NULL;
CREATE INDEX grants_by_expiry ON grants (expires_at) WHERE expires_at IS NOT NULL;

-- Of a stream, or of a whole Service Object where the stream is null.
CREATE FUNCTION is_granted(object text, stream_name text, tenant bigint, deriving boolean)
RETURNS boolean LANGUAGE sql STABLE AS $$
SELECT EXISTS (
       SELECT FROM grants
        WHERE grants.service_object = object
          AND (grants.stream IS NULL OR grants.stream = stream_name)
          AND (grantee IS NULL OR grantee = tenant)
          AND (deriving OR NOT derived_only)
          AND revoked_at IS NULL
          AND (expires_at IS NULL OR expires_at > extract(epoch FROM now()) * 1000))
$$;

CREATE OR REPLACE VIEW readers AS
SELECT service_objects.id AS service_object, tenants.id AS tenant_id
  FROM service_objects
  JOIN tenants ON service_objects.public OR tenants.id = service_objects.tenant_id
    OR is_granted(service_objects.id, NULL, tenants.id, false);

CREATE VIEW stream_readers AS
SELECT streams.id AS stream_id, tenants.id AS tenant_id
  FROM streams
  JOIN service_objects ON service_objects.id = streams.service_object
  JOIN tenants ON service_objects.public OR tenants.id = service_objects.tenant_id
    OR is_granted(service_objects.id, streams.name, tenants.id, false);
COMMENT ON VIEW stream_readers IS 'which tenants may read which stream';

CREATE VIEW stream_derivers AS
SELECT streams.id AS stream_id, tenants.id AS tenant_id
  FROM streams
  JOIN service_objects ON service_objects.id = streams.service_object
  JOIN tenants ON service_objects.public OR tenants.id = service_objects.tenant_id
    OR is_granted(service_objects.id, streams.name, tenants.id, true);
COMMENT ON VIEW stream_derivers IS 'which tenants'' composites may read which stream';

-- Who belongs to dynamic groups goes by what their readers are granted, too.
CREATE FUNCTION mark_granted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM dynamic_groups WHERE others) THEN
        INSERT INTO membership_marks (tenant_id)
        VALUES (NEW.tenant_id)
            ON CONFLICT (tenant_id) DO UPDATE
           SET changes = membership_marks.changes + 1;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER mark_granted
 AFTER INSERT OR UPDATE OF revoked_at ON grants
   FOR EACH ROW EXECUTE FUNCTION mark_granted();
