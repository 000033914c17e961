-- make --
-- Unless the tenant has as many as it may have, or the Service Object is not its own.
INSERT INTO tokens (digest, tenant_id, id, name, service_object, stream, rights, expires_at)
SELECT %(digest)s, %(tenant)s, %(id)s, %(name)s, %(service_object)s, %(stream)s,
       %(rights)s::text[], now() + %(expires)s * interval '1 second'
 WHERE (SELECT count(*) FROM tokens WHERE tenant_id = %(tenant)s AND name <> '') < %(most)s
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
   AND (name <> '' OR service_object IS NULL)
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > now())
 ORDER BY id
 LIMIT %(rows)s;

-- revoke --
DELETE FROM tokens
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
RETURNING id;

-- rotate --
-- Another token in the place of this one, which ends a little later.
WITH before AS (
    UPDATE tokens
       SET expires_at = least(expires_at, now() + %(overlap)s * interval '1 second')
     WHERE id = %(before)s
       AND tenant_id = %(tenant)s
       AND revoked_at IS NULL
       AND (expires_at IS NULL OR expires_at > now())
    RETURNING name, service_object, stream, rights
)
INSERT INTO tokens (digest, tenant_id, id, name, service_object, stream, rights, expires_at)
SELECT %(digest)s, %(tenant)s, %(id)s, name, service_object, stream, rights,
       now() + %(expires)s * interval '1 second'
  FROM before
RETURNING name, service_object, stream, rights, expires_at;
