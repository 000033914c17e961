-- Which of a Service Object's grants a tenant uses is found without a look at those of all others.

DROP INDEX grants_by_service_object;
CREATE INDEX grants_by_service_object ON grants (service_object, grantee);

-- Functions are looked at as the owner, who sees all of it for that.
ALTER TABLE grants NO FORCE ROW LEVEL SECURITY;
ALTER TABLE ended_grants NO FORCE ROW LEVEL SECURITY;

-- By which grant a tenant reads a stream of another, or derives from it. Of several the one that
-- says most exactly who and what. No row: there is none, as where the stream is public. What was
-- used until a grant ended comes to the accounts within the minute.
CREATE OR REPLACE FUNCTION grant_used(
    object text, stream_name text, tenant bigint, deriving boolean)
RETURNS TABLE (grant_id text, to_note boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT id, last_used IS NULL OR last_used < now_ms() - 60000
  FROM (SELECT id, stream, grantee, derived_only, created_at, last_used, false AS ended
          FROM grants
         WHERE grants.service_object = object
           AND grantee = tenant
           AND (active OR NOT deriving)
         UNION ALL
        SELECT id, stream, grantee, derived_only, created_at, last_used, false AS ended
          FROM grants
         WHERE grants.service_object = object
           AND grantee IS NULL
           AND (active OR NOT deriving)
         UNION ALL
        SELECT id, stream, grantee, derived_only, created_at, last_used, true AS ended
          FROM ended_grants
         WHERE ended_grants.service_object = object
           AND (grantee IS NULL OR grantee = tenant)
           AND ended_at > now_ms() - 60000) AS given
 WHERE (stream IS NULL OR stream = stream_name)
   AND (deriving OR NOT derived_only)
 ORDER BY ended, grantee IS NULL, stream IS NULL, created_at, id
 LIMIT 1
$$;

ALTER TABLE grants FORCE ROW LEVEL SECURITY;
ALTER TABLE ended_grants FORCE ROW LEVEL SECURITY;
