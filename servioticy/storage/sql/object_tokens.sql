-- replace --
-- A new token of a Service Object in the place of those that it had, which ends when that of its
-- maker does. They are good for a while yet, if asked; but those of the object itself in whose
-- place another one came already go, so that they do not become more with each time.
WITH ended AS (
    UPDATE tokens
       SET expires_at = least(expires_at, now() + %(overlap)s * interval '1 second'),
           replaced = true
     WHERE service_object = %(service_object)s
       AND tenant_id = %(tenant)s
       AND %(overlap)s > 0
       AND (name <> '' OR NOT replaced)
), gone AS (
    DELETE FROM tokens
     WHERE service_object = %(service_object)s
       AND tenant_id = %(tenant)s
       AND (%(overlap)s = 0 OR (name = '' AND replaced))
)
INSERT INTO tokens (digest, tenant_id, service_object, expires_at)
SELECT %(digest)s, %(tenant)s, id,
       (SELECT expires_at FROM tokens WHERE id = %(maker)s AND tenant_id = %(tenant)s)
  FROM service_objects
 WHERE id = %(service_object)s
   AND tenant_id = %(tenant)s
   AND deleted_at IS NULL
   FOR SHARE
RETURNING expires_at;
