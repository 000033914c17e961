-- going --
-- Between tenants: those that are deleted, and of which something may be left.
SELECT id
  FROM tenants
 WHERE deleted_at IS NOT NULL
 ORDER BY deleted_at, id
 LIMIT %(most)s;

-- service_objects --
-- That are there for the API, the newest first: who reads others comes before what it reads.
SELECT id
  FROM service_objects
 WHERE tenant_id = %(tenant)s
   AND deleted_at IS NULL
 ORDER BY sequence DESC
 LIMIT %(most)s;

-- tokens --
DELETE FROM tokens
 WHERE tenant_id = %(tenant)s
   AND digest IN (SELECT digest FROM tokens WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- members --
DELETE FROM members
 WHERE tenant_id = %(tenant)s
   AND id IN (SELECT id FROM members WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- job_items --
DELETE FROM job_items
 WHERE tenant_id = %(tenant)s
   AND (job, number) IN (SELECT job, number FROM job_items
                          WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- jobs --
DELETE FROM jobs
 WHERE tenant_id = %(tenant)s
   AND id IN (SELECT id FROM jobs WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- dead_deliveries --
DELETE FROM dead_deliveries
 WHERE tenant_id = %(tenant)s
   AND id IN (SELECT id FROM dead_deliveries WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- subscriptions --
-- With their cursors and tests.
DELETE FROM subscriptions
 WHERE tenant_id = %(tenant)s
   AND id IN (SELECT id FROM subscriptions WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- idempotency --
DELETE FROM idempotency
 WHERE tenant_id = %(tenant)s
   AND key IN (SELECT key FROM idempotency WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- claims --
DELETE FROM claims
 WHERE tenant_id = %(tenant)s
   AND (code, device) IN (SELECT code, device FROM claims
                           WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- claim_codes --
DELETE FROM claim_codes
 WHERE tenant_id = %(tenant)s
   AND id IN (SELECT id FROM claim_codes WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- template_versions --
-- Once no Service Object follows them any more.
DELETE FROM template_versions
 WHERE tenant_id = %(tenant)s
   AND (template, version) IN (SELECT template, version FROM template_versions
                                WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- templates --
DELETE FROM templates
 WHERE tenant_id = %(tenant)s
   AND id IN (SELECT id FROM templates WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- is_waited_for --
-- Whether the pipeline has still to remove something: it does so where the log says it.
SELECT EXISTS (SELECT FROM pending_changes WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM streams WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM definitions WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM graph_edges WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM purge WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM put_off WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM superseded WHERE tenant_id = %(tenant)s);

-- rest_of_service_objects --
-- With what they are listed by. Nothing else refers to them.
DELETE FROM service_objects
 WHERE tenant_id = %(tenant)s
   AND id IN (SELECT id FROM service_objects WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- audit --
-- Between tenants: nobody writes it, so no tenant removes it.
DELETE FROM audit
 WHERE tenant_id = %(tenant)s
   AND number IN (SELECT number FROM audit WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- tenant --
-- Between tenants: the tenant itself, and what only counts for it.
WITH counted AS (
    DELETE FROM audit_counts WHERE tenant_id = %(tenant)s
), parts AS (
    DELETE FROM audit_parts WHERE tenant_id = %(tenant)s
), marked AS (
    DELETE FROM membership_marks WHERE tenant_id = %(tenant)s
)
DELETE FROM tenants
 WHERE id = %(tenant)s
   AND deleted_at IS NOT NULL;
