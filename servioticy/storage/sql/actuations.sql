-- submit --
-- The newest of a Service Object are kept, and with each new one the oldest beyond them go.
WITH forgotten AS (
    DELETE FROM actuations
     WHERE tenant_id = %(tenant)s
       AND id IN (SELECT id
                    FROM actuations
                   WHERE service_object = %(service_object)s
                     AND tenant_id = %(tenant)s
                   ORDER BY sequence DESC
                  OFFSET %(kept)s - 1)
)
INSERT INTO actuations (id, tenant_id, service_object, name, parameters, status, reports,
                        created_at, updated_at)
SELECT %(id)s, %(tenant)s, service_objects.id, %(action)s, %(parameters)s, %(status)s,
       jsonb_build_array(jsonb_build_object('status', %(status)s::text,
                                            'updatedAt', %(now)s::bigint)),
       %(now)s, %(now)s
  FROM service_objects
 WHERE service_objects.id = %(service_object)s
   AND service_objects.tenant_id = %(tenant)s
   AND deleted_at IS NULL
   FOR SHARE
RETURNING id;

-- actuation --
SELECT name, parameters, status, reports::text, created_at, updated_at
  FROM actuations
 WHERE id = %(id)s
   AND service_object = %(service_object)s
   AND tenant_id = %(tenant)s;

-- report --
-- What is said of it now; of what was said before the oldest goes where there is too much.
UPDATE actuations
   SET status = %(status)s, updated_at = %(now)s,
       reports = CASE WHEN jsonb_array_length(reports) >= %(kept)s THEN reports - 0 ELSE reports END
                || jsonb_build_array(jsonb_build_object('status', %(status)s::text,
                                                        'updatedAt', %(now)s::bigint))
 WHERE id = %(id)s
   AND service_object = %(service_object)s
   AND tenant_id = %(tenant)s
RETURNING id;
