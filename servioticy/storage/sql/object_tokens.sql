-- replace --
-- A new token of a Service Object in the place of those that it had. They are good for a while
-- yet, if asked; but those of the object itself that were to end already go, so that they do not
-- become more with each time.
WITH ended AS (
    UPDATE tokens
       SET expires_at = least(expires_at, now() + %(overlap)s * interval '1 second')
     WHERE service_object = %(service_object)s
       AND tenant_id = %(tenant)s
       AND %(overlap)s > 0
       AND (name <> '' OR expires_at IS NULL)
), gone AS (
    DELETE FROM tokens
     WHERE service_object = %(service_object)s
       AND tenant_id = %(tenant)s
       AND (%(overlap)s = 0 OR (name = '' AND expires_at IS NOT NULL))
)
INSERT INTO tokens (digest, tenant_id, service_object)
SELECT %(digest)s, %(tenant)s, id
  FROM service_objects
 WHERE id = %(service_object)s
   AND tenant_id = %(tenant)s
   AND deleted_at IS NULL
   FOR SHARE
RETURNING digest;
