-- add --
-- No row: this person is a member already.
INSERT INTO members (id, tenant_id, person, issuer, subject, name, email, role)
VALUES (%(id)s, %(tenant)s, %(person)s, %(issuer)s, %(subject)s, %(name)s, %(email)s, %(role)s)
    ON CONFLICT (tenant_id, person) DO NOTHING
RETURNING id, issuer, subject, name, email, role, created_at;

-- listed --
-- The next ones of the tenant.
SELECT id, issuer, subject, name, email, role, created_at
  FROM members
 WHERE tenant_id = %(tenant)s
   AND id > %(after)s
 ORDER BY id
 LIMIT %(rows)s;

-- member --
SELECT id, issuer, subject, name, email, role, created_at
  FROM members
 WHERE tenant_id = %(tenant)s
   AND id = %(id)s;

-- change --
-- Null stays as it is. No row where nobody would be left who may add members: no other admin, and
-- no token for everything that does not end. Two admins that do it to each other wait here.
WITH admins AS (
    SELECT id
      FROM members
     WHERE tenant_id = %(tenant)s
       AND role = 'admin'
     ORDER BY id
       FOR UPDATE
)
UPDATE members
   SET role = coalesce(%(role)s, role),
       name = coalesce(%(name)s, name),
       email = coalesce(%(email)s, email)
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
   AND (coalesce(%(role)s, role) = 'admin'
        OR NOT EXISTS (SELECT FROM admins WHERE admins.id = %(id)s)
        OR EXISTS (SELECT FROM admins WHERE admins.id <> %(id)s)
        OR EXISTS (SELECT
                     FROM tokens
                    WHERE tokens.tenant_id = %(tenant)s
                      AND tokens.service_object IS NULL
                      AND (tokens.rights IS NULL OR 'admin' = ANY (tokens.rights))
                      AND tokens.revoked_at IS NULL
                      AND tokens.expires_at IS NULL))
RETURNING id, issuer, subject, name, email, role, created_at;

-- remove --
-- No row where nobody would be left, as above.
WITH admins AS (
    SELECT id
      FROM members
     WHERE tenant_id = %(tenant)s
       AND role = 'admin'
     ORDER BY id
       FOR UPDATE
)
DELETE FROM members
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
   AND (NOT EXISTS (SELECT FROM admins WHERE admins.id = %(id)s)
        OR EXISTS (SELECT FROM admins WHERE admins.id <> %(id)s)
        OR EXISTS (SELECT
                     FROM tokens
                    WHERE tokens.tenant_id = %(tenant)s
                      AND tokens.service_object IS NULL
                      AND (tokens.rights IS NULL OR 'admin' = ANY (tokens.rights))
                      AND tokens.revoked_at IS NULL
                      AND tokens.expires_at IS NULL))
RETURNING id;
