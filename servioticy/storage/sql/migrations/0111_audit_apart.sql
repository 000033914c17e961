-- What one kind of entry, or one stranger, fills of a tenant's audit log is not another's.

CREATE TABLE audit_parts (
    tenant_id bigint NOT NULL,
    kind text NOT NULL,
    causer bigint NOT NULL,
    places bigint NOT NULL,
    newest bigint NOT NULL,
    PRIMARY KEY (tenant_id, kind, causer)
);
COMMENT ON TABLE audit_parts IS
    'the parts of a tenant''s audit log that are bounded apart: by kind, and by who caused it';
COMMENT ON COLUMN audit_parts.causer IS
    'the tenant itself, another one, or 0: the platform by itself, or its operator';
COMMENT ON COLUMN audit_parts.places IS 'how many entries there have been in this part';
COMMENT ON COLUMN audit_parts.newest IS 'the number of the newest of them';

-- Functions and migrations are looked at as the owner, who sees all of it for that.
ALTER TABLE audit NO FORCE ROW LEVEL SECURITY;
ALTER TABLE audit ADD COLUMN causer bigint, ADD COLUMN place bigint;
COMMENT ON COLUMN audit.place IS 'counted for each tenant, kind and causer';
UPDATE audit
   SET causer = counted.causer, place = counted.place
  FROM (SELECT tenant_id, number, coalesce(actor_tenant, 0) AS causer,
               row_number() OVER (PARTITION BY tenant_id, kind, coalesce(actor_tenant, 0)
                                      ORDER BY number) AS place
          FROM audit) AS counted
 WHERE audit.tenant_id = counted.tenant_id
   AND audit.number = counted.number;
INSERT INTO audit_parts (tenant_id, kind, causer, places, newest)
SELECT tenant_id, kind, causer, max(place), max(number)
  FROM audit
 GROUP BY tenant_id, kind, causer;
ALTER TABLE audit ALTER COLUMN causer SET NOT NULL, ALTER COLUMN place SET NOT NULL;
CREATE INDEX audit_by_part ON audit (tenant_id, kind, causer, place);
ALTER TABLE audit FORCE ROW LEVEL SECURITY;

-- Of each part the newest stay: 20,000 of what the tenant itself did, and of the platform; 500 of
-- another tenant, and of others those 40 that came last. There are ten kinds. Where the platform
-- does what has to do with something of another tenant, that one has caused it.
DROP FUNCTION note_all_in_audit(bigint, text, text, text[]);
CREATE FUNCTION note_all_in_audit(
    tenant bigint, action text, kind text, subjects text[], because_of bigint DEFAULT 0)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    actor text[] := string_to_array(
        nullif(current_setting('servioticy.actor', true), ''), ' ');
    cause bigint := coalesce(actor[1]::bigint, because_of);
    is_stranger boolean := cause NOT IN (0, tenant);
    times bigint := cardinality(subjects);
    last_entry bigint;
    last_place bigint;
BEGIN
    INSERT INTO audit_counts (tenant_id, number)
    VALUES (tenant, times)
        ON CONFLICT (tenant_id) DO UPDATE
       SET number = audit_counts.number + excluded.number
    RETURNING number INTO last_entry;
    INSERT INTO audit_parts (tenant_id, kind, causer, places, newest)
    VALUES (tenant, note_all_in_audit.kind, cause, times, last_entry)
        ON CONFLICT ON CONSTRAINT audit_parts_pkey DO UPDATE
       SET places = audit_parts.places + excluded.places, newest = excluded.newest
    RETURNING places INTO last_place;
    INSERT INTO audit (tenant_id, number, actor_tenant, actor_token, action, kind, subject,
                       causer, place)
    SELECT tenant, last_entry - times + told.place, actor[1]::bigint, actor[2], action,
           note_all_in_audit.kind, subject, cause, last_place - times + told.place
      FROM unnest(subjects) WITH ORDINALITY AS told (subject, place);
    DELETE FROM audit
     WHERE audit.tenant_id = tenant
       AND audit.kind = note_all_in_audit.kind
       AND audit.causer = cause
       AND audit.place <= last_place - CASE WHEN is_stranger THEN 500 ELSE 20000 END;
    IF is_stranger AND last_place = times THEN
        WITH gone AS (
            DELETE FROM audit_parts
             WHERE audit_parts.tenant_id = tenant
               AND audit_parts.kind = note_all_in_audit.kind
               AND audit_parts.causer IN (
                   SELECT strangers.causer
                     FROM audit_parts AS strangers
                    WHERE strangers.tenant_id = tenant
                      AND strangers.kind = note_all_in_audit.kind
                      AND strangers.causer NOT IN (0, tenant)
                    ORDER BY strangers.newest DESC
                   OFFSET 40)
            RETURNING audit_parts.causer
        )
        DELETE FROM audit
         USING gone
         WHERE audit.tenant_id = tenant
           AND audit.kind = note_all_in_audit.kind
           AND audit.causer = gone.causer;
    END IF;
END $$;

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION note_all_in_audit OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;
REVOKE EXECUTE ON FUNCTION note_all_in_audit FROM PUBLIC;

SELECT force_row_level_security('audit_parts');
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{audit_parts}');
SELECT for_all_tenants('servioticy_platform', 'INSERT', '{audit_parts}');
SELECT for_all_tenants('servioticy_platform', 'UPDATE', '{audit_parts}');
SELECT for_all_tenants('servioticy_platform', 'DELETE', '{audit_parts}');
GRANT SELECT, INSERT, UPDATE, DELETE ON audit_parts TO servioticy_platform;
