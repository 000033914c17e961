-- make --
-- Whatever another installation on this server makes in the same moment.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY '{servioticy_api, servioticy_platform, servioticy_pipeline,
                              servioticy_delivery, servioticy_backup}'::text[] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN NOINHERIT', wanted);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
        IF NOT pg_has_role(current_user, wanted, 'MEMBER') THEN
            EXECUTE format('GRANT %I TO CURRENT_USER', wanted);
        END IF;
    END LOOP;
    IF NOT pg_has_role('servioticy_api', 'servioticy_platform', 'MEMBER') THEN
        GRANT servioticy_platform TO servioticy_api;
    END IF;
END $$;

-- too_mighty --
-- Those of them that pass policies, or own a table: then there would be no row level security.
SELECT rolname
  FROM pg_roles
 WHERE rolname = ANY(%(roles)s)
   AND (rolsuper OR rolbypassrls
        OR EXISTS (SELECT FROM pg_class WHERE relowner = pg_roles.oid AND relkind IN ('r', 'p')));
