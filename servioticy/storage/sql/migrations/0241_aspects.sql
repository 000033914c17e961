-- What tenants have measured of their own streams: an aspect for each, and what came of it by minute.

CREATE TABLE aspects (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL,
    service_object text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    stream text NOT NULL,
    purpose text NOT NULL,
    created_at bigint NOT NULL
);
COMMENT ON TABLE aspects IS 'streams of which their tenant has computations measured';
COMMENT ON COLUMN aspects.purpose IS 'what the tenant groups them by; empty: the name of the stream';
CREATE UNIQUE INDEX aspects_by_stream ON aspects (tenant_id, service_object, stream);
CREATE INDEX aspects_by_object ON aspects (service_object);

CREATE TABLE aspect_minutes (
    tenant_id bigint NOT NULL,
    aspect text NOT NULL,
    minute bigint NOT NULL,
    stored_rows bigint NOT NULL,
    stored_bytes bigint NOT NULL,
    processor_us bigint NOT NULL,
    computations jsonb NOT NULL,
    PRIMARY KEY (tenant_id, aspect, minute)
);
COMMENT ON TABLE aspect_minutes IS
    'what aspects have measured; it refers to none, so that whoever measures waits for nobody who '
    'ends one, and rows of one that has ended meanwhile go with the next that is made';
COMMENT ON COLUMN aspect_minutes.minute IS 'its beginning, in ms since 1970';

CREATE FUNCTION this_minute() RETURNS bigint LANGUAGE sql STABLE AS $$
SELECT floor(extract(epoch FROM now()) / 60)::bigint * 60000
$$;

SELECT force_row_level_security(named) FROM unnest('{aspects, aspect_minutes}'::text[]) AS named;

GRANT SELECT, INSERT, DELETE ON aspects TO servioticy_api;
GRANT SELECT, DELETE ON aspect_minutes TO servioticy_api;
SELECT for_all_tenants('servioticy_pipeline', 'SELECT', '{aspects, aspect_minutes}');
SELECT for_all_tenants('servioticy_pipeline', 'INSERT', '{aspect_minutes}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE', '{aspect_minutes}');
SELECT for_all_tenants('servioticy_pipeline', 'DELETE', '{aspect_minutes}');
GRANT SELECT ON aspects TO servioticy_pipeline;
GRANT SELECT, INSERT, UPDATE, DELETE ON aspect_minutes TO servioticy_pipeline;

CREATE FUNCTION audit_aspect() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'created', 'aspect', NEW.id);
    ELSE
        PERFORM note_in_audit(OLD.tenant_id, 'deleted', 'aspect', OLD.id);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_aspect
 AFTER INSERT OR DELETE ON aspects
   FOR EACH ROW EXECUTE FUNCTION audit_aspect();

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION audit_aspect OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;
