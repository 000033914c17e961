-- Grants that end together cost as much as there are of them: a Service Object has a thousand, and
-- what deletes it is the pipeline, where all others of the partition wait for it.

DROP TRIGGER keep_ended_grant ON grants;
DROP FUNCTION keep_ended_grant;
DROP TRIGGER audit_end_of_grant ON grants;
DROP FUNCTION audit_end_of_grant;

-- Of tenants that are still there: others' grants go with them. What another transaction is just
-- removing, or noting the use of, is not waited for: who is next removes it.
CREATE FUNCTION keep_ended_grants() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO ended_grants (id, tenant_id, service_object, stream, grantee, derived_only,
                              created_at, expires_at, first_used, last_used, ended_at)
    SELECT gone.id, tenant_id, service_object, stream, grantee, derived_only, gone.created_at,
           expires_at, first_used, last_used, now_ms()
      FROM gone
      JOIN tenants ON tenants.id = tenant_id;
    DELETE FROM ended_grants
     WHERE id IN (
           SELECT id
             FROM ended_grants
            WHERE id IN (
                  SELECT oldest.id
                    FROM (SELECT DISTINCT tenant_id FROM gone) AS givers
                   CROSS JOIN LATERAL (
                         SELECT id
                           FROM ended_grants
                          WHERE ended_grants.tenant_id = givers.tenant_id
                          ORDER BY ended_at DESC, id
                         OFFSET 1000) AS oldest)
              FOR UPDATE SKIP LOCKED);
    RETURN NULL;
END $$;

CREATE TRIGGER keep_ended_grants
 AFTER DELETE ON grants REFERENCING OLD TABLE AS gone
   FOR EACH STATEMENT EXECUTE FUNCTION keep_ended_grants();

-- Both sides, as `note_grant_in_audit` tells them of one, and in the same order.
CREATE FUNCTION audit_ended_grants() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_all_in_audit(side, 'ended', 'grant', ids, because_of)
       FROM (SELECT side, because_of, array_agg(told.id ORDER BY told.id) AS ids
               FROM (SELECT tenant_id AS side, 0 AS because_of, id
                       FROM gone
                      WHERE revoked_at IS NULL
                      UNION ALL
                     SELECT grantee, tenant_id, id
                       FROM gone
                      WHERE revoked_at IS NULL
                        AND grantee <> tenant_id) AS told
               JOIN tenants ON tenants.id = side
              GROUP BY side, because_of
              ORDER BY side, because_of) AS of_sides;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_ended_grants
 AFTER DELETE ON grants REFERENCING OLD TABLE AS gone
   FOR EACH STATEMENT EXECUTE FUNCTION audit_ended_grants();

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION keep_ended_grants OWNER TO servioticy_platform;
ALTER FUNCTION audit_ended_grants OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;
