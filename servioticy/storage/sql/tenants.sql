-- add_tenant --
INSERT INTO tenants (name)
VALUES (%(name)s)
ON CONFLICT (name) DO NOTHING
RETURNING id;

-- tenant_named --
SELECT id
  FROM tenants
 WHERE name = %(name)s;

-- add_token --
INSERT INTO tokens (digest, tenant_id)
VALUES (%(digest)s, %(tenant)s);

-- tenant_of_token --
SELECT tenant_id
  FROM tokens
 WHERE digest = %(digest)s
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > now());
