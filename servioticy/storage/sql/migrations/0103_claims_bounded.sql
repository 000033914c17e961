-- What is told of many tokens at once costs as much as there are of them; and who may ask what is
-- granted.

-- Entries in the order of the subjects. One by one they would change the same count each time,
-- and Postgres would look through all its versions of the transaction for each.
CREATE FUNCTION note_all_in_audit(tenant bigint, action text, kind text, subjects text[])
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    actor text[] := string_to_array(
        nullif(current_setting('servioticy.actor', true), ''), ' ');
    last_entry bigint;
BEGIN
    INSERT INTO audit_counts (tenant_id, number)
    VALUES (tenant, cardinality(subjects))
        ON CONFLICT (tenant_id) DO UPDATE
       SET number = audit_counts.number + excluded.number
    RETURNING number INTO last_entry;
    INSERT INTO audit (tenant_id, number, actor_tenant, actor_token, action, kind, subject)
    SELECT tenant, last_entry - cardinality(subjects) + place, actor[1]::bigint, actor[2], action,
           kind, subject
      FROM unnest(subjects) WITH ORDINALITY AS told (subject, place);
    DELETE FROM audit
     WHERE tenant_id = tenant
       AND number <= last_entry - 100000;
END $$;

CREATE OR REPLACE FUNCTION note_in_audit(tenant bigint, action text, kind text, subject text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_all_in_audit(tenant, action, kind, ARRAY[subject]);
END $$;

DROP TRIGGER audit_token ON tokens;
DROP FUNCTION audit_token;

-- Tenants in order, so that of two statements one waits for the other and not both.
CREATE FUNCTION audit_tokens() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_all_in_audit(tenant_id, TG_ARGV[0], 'token', ids)
       FROM (SELECT tenant_id, array_agg(id ORDER BY id) AS ids
               FROM changed
              GROUP BY tenant_id
              ORDER BY tenant_id) AS of_tenants;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_made_tokens
 AFTER INSERT ON tokens REFERENCING NEW TABLE AS changed
   FOR EACH STATEMENT EXECUTE FUNCTION audit_tokens('made');
CREATE TRIGGER audit_rotated_tokens
 AFTER UPDATE ON tokens REFERENCING NEW TABLE AS changed
   FOR EACH STATEMENT EXECUTE FUNCTION audit_tokens('rotated');
CREATE TRIGGER audit_revoked_tokens
 AFTER DELETE ON tokens REFERENCING OLD TABLE AS changed
   FOR EACH STATEMENT EXECUTE FUNCTION audit_tokens('revoked');

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION note_all_in_audit OWNER TO servioticy_platform;
ALTER FUNCTION audit_tokens OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;
REVOKE EXECUTE ON FUNCTION note_all_in_audit FROM PUBLIC;

-- They tell of any tenant. Whoever reads a view that calls one needs the right to it, too.
REVOKE EXECUTE ON FUNCTION is_granted, granted_for, granted_objects FROM PUBLIC;
GRANT EXECUTE ON FUNCTION is_granted
   TO servioticy_api, servioticy_platform, servioticy_pipeline, servioticy_delivery;
GRANT EXECUTE ON FUNCTION granted_for TO servioticy_platform, servioticy_delivery;
GRANT EXECUTE ON FUNCTION granted_objects TO servioticy_platform;
