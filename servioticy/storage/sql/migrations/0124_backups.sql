-- Who makes a back-up sees all rows of all tables, and changes none (servioticy/storage/roles.py).

CREATE OR REPLACE FUNCTION force_row_level_security(named text, column_name text DEFAULT 'tenant_id')
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    own text := format(
        '%I = ANY ((SELECT nullif(current_setting(''servioticy.tenants'', true), ''''))::bigint[])',
        column_name);
BEGIN
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', named);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', named);
    EXECUTE format(
        'CREATE POLICY of_the_tenant ON %I TO servioticy_api, servioticy_delivery
          USING (%s) WITH CHECK (%s)', named, own, own);
    PERFORM for_all_tenants('servioticy_backup', 'SELECT', ARRAY[named]);
END $$;

SELECT for_all_tenants('servioticy_backup', 'SELECT', array_agg(relname::text))
  FROM pg_class
 WHERE relnamespace = 'public'::regnamespace
   AND relrowsecurity
   AND pg_has_role(relowner, 'USAGE');

GRANT USAGE ON SCHEMA public TO servioticy_backup;
-- What is there, and what is made from now on: the owner's, in a database that others use, too.
DO $$
DECLARE
    named text;
BEGIN
    FOR named IN SELECT relname
                   FROM pg_class
                  WHERE relnamespace = 'public'::regnamespace
                    AND relkind IN ('r', 'p', 'v', 'S')
                    AND pg_has_role(relowner, 'USAGE') LOOP
        EXECUTE format('GRANT SELECT ON %I TO servioticy_backup', named);
    END LOOP;
END $$;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO servioticy_backup;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON SEQUENCES TO servioticy_backup;
