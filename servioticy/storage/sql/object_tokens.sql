-- replace --
-- A new token of a Service Object in the place of those that it had.
WITH before AS (
    DELETE FROM tokens
     WHERE service_object = %(service_object)s
       AND tenant_id = %(tenant)s
)
INSERT INTO tokens (digest, tenant_id, service_object)
SELECT %(digest)s, %(tenant)s, id
  FROM service_objects
 WHERE id = %(service_object)s
   AND tenant_id = %(tenant)s
   AND deleted_at IS NULL
   FOR SHARE
RETURNING digest;
