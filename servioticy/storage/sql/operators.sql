-- newest --
-- The newest version of a program.
SELECT version, digest
  FROM operator_versions
 WHERE tenant_id = %(tenant)s
   AND name = %(name)s
 ORDER BY version DESC
 LIMIT 1;

-- push --
-- A further version; nothing where the tenant has as many names as it may.
WITH named AS (
    INSERT INTO operators (tenant_id, name, last_version)
    SELECT %(tenant)s, %(name)s, 1
     WHERE (SELECT count(*) FROM operators
             WHERE tenant_id = %(tenant)s AND name <> %(name)s) < %(most)s
        ON CONFLICT (tenant_id, name) DO UPDATE
       SET last_version = operators.last_version + 1
    RETURNING last_version
)
INSERT INTO operator_versions
       (tenant_id, name, version, manifest, digest, archive, created_at)
SELECT %(tenant)s, %(name)s, last_version, %(manifest)s::json, %(digest)s, %(archive)s, %(now)s
  FROM named
RETURNING version;

-- listed --
-- All versions of the tenant's programs, the newest of each first.
SELECT name, version, manifest::text, length(archive), created_at
  FROM operator_versions
 WHERE tenant_id = %(tenant)s
   AND (name, -version) > (%(name)s, %(after)s)
 ORDER BY name, -version
 LIMIT %(rows)s;

-- version --
SELECT name, version, manifest::text, length(archive), created_at
  FROM operator_versions
 WHERE tenant_id = %(tenant)s
   AND name = %(name)s
   AND version = %(version)s;

-- runs --
-- How a version runs for its tenant, by node.
SELECT node, state, restarts, problem, printed,
       (extract(epoch FROM told_at) * 1000)::bigint
  FROM operator_runs
 WHERE tenant_id = %(tenant)s
   AND name = %(name)s
   AND version = %(version)s
 ORDER BY node
 LIMIT %(most)s;

-- states --
-- How the tenant's programs run: how many processes are in each state.
SELECT name, version, state, count(*)
  FROM operator_runs
 WHERE tenant_id = %(tenant)s
 GROUP BY name, version, state;

-- remove --
-- One version, or all.
DELETE FROM operator_versions
 WHERE tenant_id = %(tenant)s
   AND name = %(name)s
   AND (version = %(version)s OR %(version)s IS NULL)
RETURNING version;

-- grant --
-- To this tenant; nothing where there is no such program, or it has as many grants as it may.
INSERT INTO operator_grants (tenant_id, name, grantee, created_at)
SELECT tenant_id, name, %(grantee)s, %(now)s
  FROM operators
 WHERE tenant_id = %(tenant)s
   AND name = %(name)s
   AND (SELECT count(*) FROM operator_grants
         WHERE operator_grants.tenant_id = %(tenant)s
           AND operator_grants.name = %(name)s) < %(most)s
    ON CONFLICT (tenant_id, name, grantee) DO UPDATE
   SET created_at = operator_grants.created_at
RETURNING 1;

-- revoke --
DELETE FROM operator_grants
 WHERE tenant_id = %(tenant)s
   AND name = %(name)s
   AND grantee = %(grantee)s
RETURNING 1;

-- grants --
-- Between tenants: a grant is to another one.
-- To whom each of the tenant's programs is granted.
SELECT operator_grants.name, public_id, tenants.name
  FROM operator_grants
  JOIN tenants ON tenants.id = grantee
 WHERE operator_grants.tenant_id = %(tenant)s
 ORDER BY operator_grants.name, public_id;
