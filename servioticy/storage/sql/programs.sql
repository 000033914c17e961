-- found --
-- Between tenants: a program may be another one's, by a grant.
-- Of those that are asked for, by their numbers, what their tenants may use: with its manifest and
-- the digest of its files.
SELECT number, manifest::text, digest
  FROM unnest(%(tenants)s::bigint[], %(owners)s::bigint[], %(names)s::text[], %(versions)s::int[])
       WITH ORDINALITY AS asked (tenant, owner, program, wanted, number)
  JOIN tenants ON tenants.id = owner
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
 WHERE tenant_id = %(owner)s
   AND name = %(name)s
   AND version = %(version)s
   AND digest = %(digest)s;

-- owners --
-- Between tenants: by its name a tenant is known to those whom it has told.
-- Who has these names now.
SELECT name, id
  FROM tenants
 WHERE name = ANY(%(names)s::text[])
   AND deleted_at IS NULL;
