-- begin --
-- Beside it so many of the tenant's stay, the newest; those that have ended go.
WITH kept AS (
    SELECT digest
      FROM console_sessions
     WHERE tenant_id = %(tenant)s
       AND expires_at > now()
     ORDER BY created_at DESC
     LIMIT %(keep)s
), gone AS (
    DELETE FROM console_sessions
     WHERE tenant_id = %(tenant)s
       AND digest NOT IN (SELECT digest FROM kept)
)
INSERT INTO console_sessions (digest, tenant_id, token, known_by, expires_at)
VALUES (%(digest)s, %(tenant)s, %(token)s, %(known_by)s,
        now() + make_interval(secs => %(seconds)s));

-- session --
-- Between tenants: before it is known who asks there is no tenant to name.
SELECT token, extract(epoch FROM expires_at - now())::double precision
  FROM console_sessions
 WHERE digest = %(digest)s
   AND expires_at > now();

-- end --
-- Between tenants: whoever has the cookie may end it.
DELETE FROM console_sessions
 WHERE digest = %(digest)s
RETURNING 1;
