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
INSERT INTO console_sessions
       (digest, tenant_id, token, known_by, expires_at, renewal, renew_at, token_ends_at)
VALUES (%(digest)s, %(tenant)s, %(token)s, %(known_by)s,
        now() + make_interval(secs => %(seconds)s), %(renewal)s,
        now() + make_interval(secs => %(renew_in)s),
        now() + make_interval(secs => %(token_seconds)s));

-- session --
-- Between tenants: before it is known who asks there is no tenant to name.
SELECT token, extract(epoch FROM expires_at - now())::double precision, tenant_id,
       renewal IS NOT NULL AND renew_at <= now(),
       renewal IS NOT NULL AND token_ends_at <= now()
  FROM console_sessions
 WHERE digest = %(digest)s
   AND expires_at > now();

-- claim --
-- Between tenants: whoever has the cookie may renew it.
-- Who gets the row renews it; nobody else does before it is time to try again.
UPDATE console_sessions
   SET renew_at = now() + make_interval(secs => %(again)s)
 WHERE digest = %(digest)s
   AND renewal IS NOT NULL
   AND renew_at <= now()
RETURNING renewal;

-- renew --
-- Between tenants: whoever has the cookie may renew it.
UPDATE console_sessions
   SET token = %(token)s,
       renewal = %(renewal)s,
       renew_at = now() + make_interval(secs => %(renew_in)s),
       token_ends_at = now() + make_interval(secs => %(token_seconds)s)
 WHERE digest = %(digest)s;

-- keep_as_it_is --
-- Between tenants: whoever has the cookie may renew it.
UPDATE console_sessions
   SET renewal = NULL,
       renew_at = NULL,
       token_ends_at = NULL
 WHERE digest = %(digest)s;

-- end --
-- Between tenants: whoever has the cookie may end it.
DELETE FROM console_sessions
 WHERE digest = %(digest)s
RETURNING 1;

-- signing_key --
-- By which what browsers keep of sign-ins is signed; there may be none yet.
SELECT content
  FROM console_keys;

-- make_signing_key --
-- Of several processes that make one at once the first does.
INSERT INTO console_keys (content)
VALUES (%(content)s)
    ON CONFLICT (one_row) DO NOTHING;

-- was_used --
-- Between tenants: before it is known who asks there is no tenant to name.
SELECT 1
  FROM console_sign_ins
 WHERE digest = %(digest)s
   AND ends_at > now();

-- use --
-- Once: a row, if nobody has. Beside it so many of the tenant's stay, the newest.
WITH kept AS (
    SELECT digest
      FROM console_sign_ins
     WHERE tenant_id = %(tenant)s
       AND ends_at > now()
       AND digest <> %(digest)s
     ORDER BY ends_at DESC
     LIMIT %(keep)s
), gone AS (
    DELETE FROM console_sign_ins
     WHERE tenant_id = %(tenant)s
       AND digest <> %(digest)s
       AND digest NOT IN (SELECT digest FROM kept)
)
INSERT INTO console_sign_ins (digest, tenant_id, ends_at)
VALUES (%(digest)s, %(tenant)s, now() + make_interval(secs => %(seconds)s))
    ON CONFLICT (digest) DO NOTHING
RETURNING 1;
