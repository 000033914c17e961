-- found --
-- Between tenants: a program may be another one's, by a grant.
-- Of those that are asked for, by their numbers, what their tenants may use: with its manifest and
-- the digest of its files.
SELECT number, manifest::text, digest
  FROM unnest(%(tenants)s::bigint[], %(owners)s::text[], %(names)s::text[], %(versions)s::int[])
       WITH ORDINALITY AS asked (tenant, owner, program, wanted, number)
  JOIN tenants ON CASE WHEN owner = '' THEN tenants.id = asked.tenant
                       ELSE tenants.name = owner END
   AND deleted_at IS NULL
  JOIN operator_versions ON operator_versions.tenant_id = tenants.id
   AND operator_versions.name = program
   AND operator_versions.version = wanted
 WHERE tenants.id = asked.tenant
    OR EXISTS (SELECT FROM operator_grants
                WHERE operator_grants.tenant_id = tenants.id
                  AND operator_grants.name = program
                  AND grantee = asked.tenant);

-- archive --
-- Between tenants: a program may be another one's, by a grant; which was looked at before.
SELECT archive
  FROM operator_versions
  JOIN tenants ON tenants.id = operator_versions.tenant_id
   AND CASE WHEN %(owner)s = '' THEN tenants.id = %(tenant)s ELSE tenants.name = %(owner)s END
 WHERE operator_versions.name = %(name)s
   AND operator_versions.version = %(version)s
   AND digest = %(digest)s;
