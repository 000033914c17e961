-- objects --
-- Between tenants: what is too old goes, whosesoever it is; some of it at once.
-- Those deleted of which everything else has gone, and that no record of the log names any more.
DELETE FROM service_objects
 WHERE id = ANY(ARRAY(
       SELECT id
         FROM service_objects
        WHERE deleted_at < %(objects)s
          AND active_change = 9223372036854775807
          AND NOT EXISTS (SELECT FROM streams
                           WHERE service_object = service_objects.id
                             AND streams.tenant_id = service_objects.tenant_id)
          AND NOT EXISTS (SELECT FROM definitions
                           WHERE service_object = service_objects.id
                             AND definitions.tenant_id = service_objects.tenant_id)
          AND NOT EXISTS (SELECT FROM tokens
                           WHERE service_object = service_objects.id
                             AND tokens.tenant_id = service_objects.tenant_id)
        ORDER BY deleted_at
        LIMIT %(most)s))
RETURNING 1;

-- answers --
-- Between tenants: what is too old goes, whosesoever it is; some of it at once.
-- Kept for requests that came with an Idempotency-Key.
DELETE FROM idempotency
 WHERE (tenant_id, key) IN (
       SELECT tenant_id, key
         FROM idempotency
        WHERE began_at < %(answers)s
        ORDER BY began_at
        LIMIT %(most)s)
RETURNING 1;

-- claim_codes --
-- Between tenants: what is too old goes, whosesoever it is; some of it at once.
-- That ended so long ago, or are for a Service Object that is deleted.
DELETE FROM claim_codes
 WHERE id = ANY(ARRAY(
       SELECT id
         FROM claim_codes
        WHERE expires_at < to_timestamp(%(codes)s / 1000.0)
        ORDER BY expires_at
        LIMIT %(most)s))
    OR id = ANY(ARRAY(
       SELECT claim_codes.id
         FROM claim_codes
         JOIN service_objects ON service_objects.id = service_object
          AND service_objects.tenant_id = claim_codes.tenant_id
          AND deleted_at IS NOT NULL
        LIMIT %(most)s))
RETURNING 1;

-- templates --
-- Between tenants: what is too old goes, whosesoever it is; some of it at once.
-- With all their versions: one at a time.
DELETE FROM templates
 WHERE id = ANY(ARRAY(
       SELECT id
         FROM templates
        WHERE deleted_at < %(templates)s
          AND NOT EXISTS (SELECT FROM template_objects
                           WHERE template = templates.id
                             AND template_objects.tenant_id = templates.tenant_id)
        LIMIT 1))
RETURNING 1;

-- dead_deliveries --
-- Between tenants: what is too old goes, whosesoever it is; some of it at once.
DELETE FROM dead_deliveries
 WHERE id = ANY(ARRAY(
       SELECT id
         FROM dead_deliveries
        WHERE died_at < %(dead)s
        ORDER BY died_at
        LIMIT %(most)s))
RETURNING 1;
