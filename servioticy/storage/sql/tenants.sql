-- add_tenant --
-- Between tenants: there is another one.
INSERT INTO tenants (name)
VALUES (%(name)s)
ON CONFLICT (name) DO NOTHING
RETURNING id;

-- tenant_named --
-- Between tenants: an operator names one.
SELECT id
  FROM tenants
 WHERE name = %(name)s
   AND deleted_at IS NULL;

-- delete_tenant --
-- Between tenants: an operator names one.
UPDATE tenants
   SET deleted_at = now()
 WHERE name = %(name)s
   AND deleted_at IS NULL
RETURNING id;

-- drop_tokens --
DELETE FROM tokens
 WHERE tenant_id = %(tenant)s;

-- drop_members --
DELETE FROM members
 WHERE tenant_id = %(tenant)s;

-- add_token --
INSERT INTO tokens (digest, tenant_id)
VALUES (%(digest)s, %(tenant)s);

-- tenant_of_token --
-- Between tenants: before it is known who asks there is no tenant to name.
SELECT tenant_id
  FROM tokens
  JOIN tenants ON tenants.id = tenant_id
   AND deleted_at IS NULL
 WHERE digest = %(digest)s
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > now());
