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
RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT EXISTS (
       SELECT FROM grants
        WHERE grants.service_object = object
          AND (grants.stream IS NULL OR grants.stream = stream_name)
          AND (grantee IS NULL OR grantee = tenant)
          AND (deriving OR NOT derived_only)
          AND revoked_at IS NULL
          AND (expires_at IS NULL OR expires_at > extract(epoch FROM now()) * 1000))
$$;

CREATE OR REPLACE VIEW readers WITH (security_invoker = true) AS
SELECT service_objects.id AS service_object, tenants.id AS tenant_id
  FROM service_objects
  JOIN tenants ON service_objects.public OR tenants.id = service_objects.tenant_id
    OR is_granted(service_objects.id, NULL, tenants.id, false);

CREATE VIEW stream_readers WITH (security_invoker = true) AS
SELECT streams.id AS stream_id, tenants.id AS tenant_id
  FROM streams
  JOIN service_objects ON service_objects.id = streams.service_object
  JOIN tenants ON service_objects.public OR tenants.id = service_objects.tenant_id
    OR is_granted(service_objects.id, streams.name, tenants.id, false);
COMMENT ON VIEW stream_readers IS 'which tenants may read which stream';

CREATE VIEW stream_derivers WITH (security_invoker = true) AS
SELECT streams.id AS stream_id, tenants.id AS tenant_id
  FROM streams
  JOIN service_objects ON service_objects.id = streams.service_object
  JOIN tenants ON service_objects.public OR tenants.id = service_objects.tenant_id
    OR is_granted(service_objects.id, streams.name, tenants.id, true);
COMMENT ON VIEW stream_derivers IS 'which tenants'' composites may read which stream';

-- Who belongs to dynamic groups goes by what their readers are granted, too.
CREATE FUNCTION mark_granted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM dynamic_groups WHERE others) THEN
        INSERT INTO membership_marks (tenant_id)
        VALUES (NEW.tenant_id)
            ON CONFLICT (tenant_id) DO UPDATE
           SET changes = membership_marks.changes + 1;
    END IF;
    -- Delivery looks anew at who may stay, and at what subscriptions to several streams are about.
    PERFORM pg_notify('servioticy_access', 'object ' || NEW.service_object);
    UPDATE subscriptions
       SET changes = changes + 1
     WHERE service_object = NEW.service_object;
    UPDATE subscriptions
       SET changes = changes + 1
      FROM (SELECT DISTINCT reader, group_name
              FROM streams
              JOIN graph_edges ON stream_id = streams.id
             WHERE streams.service_object = NEW.service_object) AS groups
     WHERE subscriptions.service_object = groups.reader
       AND subscriptions.group_name = groups.group_name;
    RETURN NULL;
END $$;

CREATE TRIGGER mark_granted
 AFTER INSERT OR UPDATE OF revoked_at ON grants
   FOR EACH ROW EXECUTE FUNCTION mark_granted();

-- Both sides find it in their audit logs.
CREATE FUNCTION audit_grant() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    done text := CASE TG_OP WHEN 'INSERT' THEN 'made' ELSE 'revoked' END;
BEGIN
    PERFORM note_in_audit(NEW.tenant_id, done, 'grant', NEW.id);
    IF NEW.grantee IS NOT NULL THEN
        PERFORM note_in_audit(NEW.grantee, done, 'grant', NEW.id);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_grant
 AFTER INSERT OR UPDATE OF revoked_at ON grants
   FOR EACH ROW EXECUTE FUNCTION audit_grant();

SELECT force_row_level_security('grants');
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{grants}');
SELECT for_all_tenants('servioticy_pipeline', 'SELECT', '{grants}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE', '{grants}');
SELECT for_all_tenants('servioticy_pipeline', 'DELETE', '{grants}');
GRANT SELECT, INSERT ON grants TO servioticy_api;
GRANT UPDATE (revoked_at) ON grants TO servioticy_api;
GRANT SELECT ON grants, stream_readers, stream_derivers TO servioticy_platform;
GRANT SELECT, DELETE ON grants TO servioticy_pipeline;
GRANT UPDATE (active) ON grants TO servioticy_pipeline;
GRANT SELECT ON stream_readers TO servioticy_api, servioticy_delivery;

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION is_granted OWNER TO servioticy_platform;
ALTER FUNCTION mark_granted OWNER TO servioticy_platform;
ALTER FUNCTION audit_grant OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;

-- What each tenant has used, hour by hour, of each stream. Named by words and not by numbers: what
-- was used is to be paid when the stream is gone.

CREATE TABLE usage_hours (
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    hour bigint NOT NULL,
    service_object text NOT NULL,
    stream text NOT NULL,
    provider_id bigint NOT NULL,
    updates_in bigint NOT NULL DEFAULT 0,
    computations jsonb NOT NULL DEFAULT '{}',
    processor_us bigint NOT NULL DEFAULT 0,
    stored_rows bigint NOT NULL DEFAULT 0,
    stored_bytes bigint NOT NULL DEFAULT 0,
    deliveries bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, hour, service_object, stream, provider_id)
);
COMMENT ON COLUMN usage_hours.tenant_id IS 'who pays: who sends, computes, or has it delivered';
COMMENT ON COLUMN usage_hours.hour IS 'when it began, in milliseconds since 1970';
COMMENT ON COLUMN usage_hours.provider_id IS
    'whose stream woke the computations, or was delivered; the tenant itself, or who granted it';
COMMENT ON COLUMN usage_hours.computations IS 'how many ended with which verdict';
CREATE INDEX usage_hours_by_provider ON usage_hours (provider_id, hour)
 WHERE provider_id <> tenant_id;
CREATE INDEX usage_hours_by_hour ON usage_hours (hour);

CREATE FUNCTION this_hour() RETURNS bigint LANGUAGE sql STABLE AS $$
SELECT floor(extract(epoch FROM now()) / 3600)::bigint * 3600000
$$;

CREATE FUNCTION counts_added(a jsonb, b jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
SELECT coalesce(jsonb_object_agg(name, times), '{}')
  FROM (SELECT name, sum(times::bigint) AS times
          FROM (SELECT * FROM jsonb_each_text(a)
                 UNION ALL
                SELECT * FROM jsonb_each_text(b)) AS counted (name, times)
         GROUP BY name) AS added
$$;

CREATE AGGREGATE counts_summed(jsonb) (SFUNC = counts_added, STYPE = jsonb, INITCOND = '{}');

SELECT force_row_level_security('usage_hours');
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{usage_hours}');
SELECT for_all_tenants('servioticy_platform', 'DELETE', '{usage_hours}');
SELECT for_all_tenants('servioticy_pipeline', 'SELECT', '{usage_hours}');
SELECT for_all_tenants('servioticy_pipeline', 'INSERT', '{usage_hours}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE', '{usage_hours}');
SELECT for_all_tenants('servioticy_delivery', 'SELECT', '{usage_hours}');
SELECT for_all_tenants('servioticy_delivery', 'INSERT', '{usage_hours}');
SELECT for_all_tenants('servioticy_delivery', 'UPDATE', '{usage_hours}');
GRANT SELECT ON usage_hours TO servioticy_api;
GRANT SELECT, DELETE ON usage_hours TO servioticy_platform;
GRANT SELECT, INSERT, UPDATE ON usage_hours TO servioticy_pipeline, servioticy_delivery;

-- What an operator lets a tenant have that is not what every tenant may have, and how much is
-- stored of each.

CREATE TABLE quotas (
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL,
    most bigint NOT NULL CHECK (most >= 0),
    PRIMARY KEY (tenant_id, name)
);
COMMENT ON COLUMN quotas.name IS 'as in servioticy/domain/quotas.py';

CREATE TABLE stored_amounts (
    tenant_id bigint PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    bytes bigint NOT NULL
);
COMMENT ON TABLE stored_amounts IS
    'how many bytes of updates are stored of a tenant: some seconds late, and about';

SELECT force_row_level_security('quotas');
SELECT force_row_level_security('stored_amounts');
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{quotas}');
SELECT for_all_tenants('servioticy_platform', 'INSERT', '{quotas}');
SELECT for_all_tenants('servioticy_platform', 'UPDATE', '{quotas}');
SELECT for_all_tenants('servioticy_platform', 'DELETE', '{quotas}');
SELECT for_all_tenants('servioticy_delivery', 'SELECT', '{quotas}');
SELECT for_all_tenants('servioticy_pipeline', 'SELECT', '{stored_amounts}');
SELECT for_all_tenants('servioticy_pipeline', 'INSERT', '{stored_amounts}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE', '{stored_amounts}');
GRANT SELECT ON quotas, stored_amounts TO servioticy_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON quotas TO servioticy_platform;
GRANT SELECT ON quotas TO servioticy_delivery;
GRANT SELECT, INSERT, UPDATE ON stored_amounts TO servioticy_pipeline;
