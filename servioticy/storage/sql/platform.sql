-- name --
-- What an operator calls a tenant.
SELECT name
  FROM tenants
 WHERE id = %(tenant)s;
