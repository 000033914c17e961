-- make --
INSERT INTO tokens (digest, tenant_id, id, name, service_object, stream, rights, expires_at)
VALUES (%(digest)s, %(tenant)s, %(id)s, %(name)s, %(service_object)s, %(stream)s,
        %(rights)s::text[], now() + %(expires)s * interval '1 second')
RETURNING expires_at;

-- own_stream --
SELECT service_objects.id, streams.name
  FROM service_objects
  LEFT JOIN streams ON service_object = service_objects.id AND streams.name = %(stream)s
   AND streams.tenant_id = %(tenant)s
 WHERE service_objects.id = %(service_object)s
   AND service_objects.tenant_id = %(tenant)s
   AND deleted_at IS NULL;

-- listed --
-- The next ones of the tenant, but for those that Service Objects were born with.
SELECT id, name, service_object, stream, rights, created_at, expires_at
  FROM tokens
 WHERE tenant_id = %(tenant)s
   AND id > %(after)s
   AND is_listed(tokens)
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > now())
 ORDER BY id
 LIMIT %(rows)s;

-- revoke --
DELETE FROM tokens
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
RETURNING id;

-- is_good --
-- And whether it is listed.
SELECT is_listed(tokens)
  FROM tokens
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > now());

-- rotate --
-- Another token in the place of this one, which ends a little later, for as long from now on as
-- this one was for unless it is said for how long; none where there would be
-- more beside it than there may be: of the listed ones, or of those of one Service Object.
WITH before AS (
    SELECT name, service_object, stream, rights, expires_at - created_at AS life
      FROM tokens
     WHERE id = %(before)s
       AND tenant_id = %(tenant)s
       AND revoked_at IS NULL
       AND (expires_at IS NULL OR expires_at > now())
       AND CASE WHEN is_listed(tokens) THEN %(most)s ELSE %(most_of_one)s END > (
               SELECT count(*)
                 FROM tokens AS others
                WHERE others.tenant_id = %(tenant)s
                  AND others.id <> %(before)s
                  AND is_listed(others) = is_listed(tokens)
                  AND (is_listed(others) OR others.service_object = tokens.service_object)
                  AND others.revoked_at IS NULL
                  AND (others.expires_at IS NULL OR others.expires_at > now()))
       FOR UPDATE
), ended AS (
    UPDATE tokens
       SET expires_at = least(expires_at, now() + %(overlap)s * interval '1 second'),
           replaced = true
      FROM before
     WHERE id = %(before)s
       AND tenant_id = %(tenant)s
)
INSERT INTO tokens (digest, tenant_id, id, name, service_object, stream, rights, expires_at)
SELECT %(digest)s, %(tenant)s, %(id)s, name, service_object, stream, rights,
       now() + coalesce(%(expires)s * interval '1 second', life)
  FROM before
RETURNING name, service_object, stream, rights, expires_at;

-- forget_ended --
-- Of those of the tenant that have ended all but the last ones, more than are made between two
-- looks. The order is that of the tenant's own index: no look goes past those of others.
DELETE FROM tokens
 WHERE tenant_id = %(tenant)s
   AND digest = ANY(ARRAY(
       SELECT digest
         FROM tokens
        WHERE tenant_id = %(tenant)s
          AND expires_at < now()
        ORDER BY tenant_id DESC, expires_at DESC
       OFFSET %(keep)s
        LIMIT 100));

-- forget --
-- Between tenants: what has ended long ago goes, whosesoever it was; some of it at once.
DELETE FROM tokens
 WHERE digest = ANY(ARRAY(
       SELECT digest
         FROM tokens
        WHERE expires_at < now() - %(days)s * interval '1 day'
        ORDER BY expires_at
        LIMIT %(most)s))
RETURNING id;
