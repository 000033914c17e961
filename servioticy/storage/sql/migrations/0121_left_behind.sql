-- Whatever is left behind is counted and goes in time: what was deleted, earlier versions, what has
-- ended. What Service Objects are listed by is bounded in bytes.

-- Versions: their bytes, and the last change that names each. One that the log has still to name
-- stays; of those that were there before, that is not known until the next change of their object.
ALTER TABLE definitions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE definitions ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE definitions ADD COLUMN named_by bigint NOT NULL DEFAULT 9223372036854775807;
UPDATE definitions
   SET bytes = octet_length(document::text),
       named_by = (SELECT last_value FROM pending_changes_id_seq);
ALTER TABLE definitions FORCE ROW LEVEL SECURITY;
COMMENT ON COLUMN definitions.bytes IS 'of its document, for the quota';
COMMENT ON COLUMN definitions.named_by IS
    'number of the last change that puts it in force: it stays until the log has passed that';
CREATE INDEX definitions_by_tenant ON definitions (tenant_id) INCLUDE (bytes);

-- What is longer than 64 KiB is not searched: whoever changes something waits for what is derived
-- of it here.
CREATE OR REPLACE FUNCTION list_service_object() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    searched json := CASE WHEN octet_length(NEW.custom_fields::text) <= 65536
                          THEN NEW.custom_fields END;
BEGIN
    IF NEW.deleted_at IS NOT NULL THEN
        DELETE FROM listings
         WHERE service_object = NEW.id
           AND tenant_id = NEW.tenant_id;
        RETURN NULL;
    END IF;
    INSERT INTO listings (service_object, tenant_id, name, fields, channel_types, latitude,
                          longitude)
    SELECT id, service_objects.tenant_id, listed_name(document), listed_fields(searched),
           listed_channel_types(document), place[1], place[2]
      FROM service_objects
      JOIN definitions ON service_object = id AND definitions.version = service_objects.version
     CROSS JOIN LATERAL listed_place(searched) AS place
     WHERE id = NEW.id
    ON CONFLICT (service_object) DO UPDATE
       SET name = excluded.name, fields = excluded.fields,
           channel_types = excluded.channel_types, latitude = excluded.latitude,
           longitude = excluded.longitude;
    RETURN NULL;
END $$;

GRANT DELETE ON listings TO servioticy_platform;
SELECT for_all_tenants('servioticy_platform', 'DELETE', '{listings}');

-- What has been deleted keeps its id alone, and that for a while.
ALTER TABLE service_objects NO FORCE ROW LEVEL SECURITY;
ALTER TABLE listings NO FORCE ROW LEVEL SECURITY;
ALTER TABLE service_objects DISABLE TRIGGER USER;
UPDATE service_objects SET custom_fields = NULL WHERE deleted_at IS NOT NULL;
ALTER TABLE service_objects ENABLE TRIGGER USER;
DELETE FROM listings
 USING service_objects
 WHERE id = service_object
   AND deleted_at IS NOT NULL;
ALTER TABLE listings FORCE ROW LEVEL SECURITY;
ALTER TABLE service_objects FORCE ROW LEVEL SECURITY;
COMMENT ON COLUMN service_objects.deleted_at IS
    'when the API deleted it; the row stays until no record of the log can name it any more';
CREATE INDEX service_objects_gone ON service_objects (deleted_at)
 WHERE active_change = 9223372036854775807;

CREATE OR REPLACE VIEW readers WITH (security_invoker = true) AS
SELECT service_objects.id AS service_object, tenants.id AS tenant_id
  FROM service_objects
  JOIN tenants ON service_objects.public OR tenants.id = service_objects.tenant_id
    OR is_granted(service_objects.id, NULL, tenants.id, false)
 WHERE active_change < 9223372036854775807;

-- What goes in time, whosesoever it is.
CREATE INDEX tokens_ended ON tokens (tenant_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX idempotency_by_beginning ON idempotency (began_at);
CREATE INDEX claim_codes_by_end ON claim_codes (expires_at);
CREATE INDEX templates_deleted ON templates (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX dead_deliveries_by_age ON dead_deliveries (died_at);

SELECT for_all_tenants('servioticy_platform', 'SELECT',
                       '{idempotency, templates, dead_deliveries}');
SELECT for_all_tenants('servioticy_platform', 'DELETE',
                       '{service_objects, idempotency, claim_codes, templates, dead_deliveries}');
GRANT SELECT (tenant_id, key, began_at) ON idempotency TO servioticy_platform;
GRANT SELECT (id, tenant_id, deleted_at) ON templates TO servioticy_platform;
GRANT SELECT (id, tenant_id, died_at) ON dead_deliveries TO servioticy_platform;
GRANT DELETE ON service_objects, idempotency, claim_codes, templates, dead_deliveries
   TO servioticy_platform;
