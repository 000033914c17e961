-- grantee --
-- Between tenants: a grant is to another one.
SELECT id
  FROM tenants
 WHERE public_id = %(public_id)s
   AND deleted_at IS NULL;

-- public_id --
-- By which others name the tenant.
SELECT public_id
  FROM tenants
 WHERE id = %(tenant)s;

-- listed --
-- Between tenants: a grant is seen by who has given it, and by whom it is for.
-- The next ones that the tenant has given, or has been given by name; without those that ended.
SELECT grants.id, grants.tenant_id = %(tenant)s AS given, giver.name, grants.service_object,
       grants.stream, receiver.public_id, receiver.name, grantee IS NULL AS everyone, derived_only,
       grants.created_at, grants.expires_at, first_used, last_used, NULL AS ended_at
  FROM grants
  JOIN service_objects ON service_objects.id = grants.service_object
   AND service_objects.tenant_id = grants.tenant_id
   AND deleted_at IS NULL
  JOIN tenants AS giver ON giver.id = grants.tenant_id
  LEFT JOIN tenants AS receiver ON receiver.id = grantee
 WHERE (grants.tenant_id = %(tenant)s AND %(given)s OR grantee = %(tenant)s AND %(received)s)
   AND grants.id > %(after)s
   AND revoked_at IS NULL
   AND (grants.expires_at IS NULL OR grants.expires_at > %(now)s)
 ORDER BY grants.id
 LIMIT %(rows)s;

-- grant --
-- Between tenants: a grant is seen by who has given it, and by whom it is for.
-- One that the tenant has given, or has been given by name, though it has ended.
SELECT found.id, found.tenant_id = %(tenant)s AS given, giver.name, service_object, stream,
       receiver.public_id, receiver.name, grantee IS NULL AS everyone, derived_only,
       found.created_at, expires_at, first_used, last_used, ended_at
  FROM (SELECT id, tenant_id, service_object, stream, grantee, derived_only, created_at,
               expires_at, first_used, last_used,
               CASE WHEN revoked_at IS NOT NULL THEN revoked_at
                    WHEN expires_at <= %(now)s THEN expires_at END AS ended_at
          FROM grants
         WHERE id = %(grant)s
           AND (tenant_id = %(tenant)s OR grantee = %(tenant)s)
         UNION ALL
        SELECT id, tenant_id, service_object, stream, grantee, derived_only, created_at,
               expires_at, first_used, last_used, ended_at
          FROM ended_grants
         WHERE id = %(grant)s
           AND (tenant_id = %(tenant)s OR grantee = %(tenant)s)) AS found
  JOIN tenants AS giver ON giver.id = found.tenant_id
  LEFT JOIN tenants AS receiver ON receiver.id = grantee;
