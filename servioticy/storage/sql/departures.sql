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

-- aspects --
DELETE FROM aspects
 WHERE tenant_id = %(tenant)s
   AND id IN (SELECT id FROM aspects WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- aspect_minutes --
DELETE FROM aspect_minutes
 WHERE tenant_id = %(tenant)s
   AND (aspect, minute) IN (SELECT aspect, minute FROM aspect_minutes
                             WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- members --
DELETE FROM members
 WHERE tenant_id = %(tenant)s
   AND id IN (SELECT id FROM members WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- operator_versions --
-- Some at a time: an archive may have 8 MiB.
DELETE FROM operator_versions
 WHERE tenant_id = %(tenant)s
   AND (name, version) IN (SELECT name, version FROM operator_versions
                            WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- operators --
-- With their grants.
DELETE FROM operators
 WHERE tenant_id = %(tenant)s
   AND name IN (SELECT name FROM operators WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- console_sessions --
DELETE FROM console_sessions
 WHERE tenant_id = %(tenant)s
   AND digest IN (SELECT digest FROM console_sessions WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- console_sign_ins --
DELETE FROM console_sign_ins
 WHERE tenant_id = %(tenant)s
   AND digest IN (SELECT digest FROM console_sign_ins WHERE tenant_id = %(tenant)s LIMIT %(most)s)
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

-- workflow_versions --
DELETE FROM workflow_versions
 WHERE tenant_id = %(tenant)s
   AND (workflow, version) IN (SELECT workflow, version FROM workflow_versions
                               WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- workflows --
-- With their dead letters, results and accounts.
DELETE FROM workflows
 WHERE tenant_id = %(tenant)s
   AND id IN (SELECT id FROM workflows
              WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- atoms --
DELETE FROM atoms
 WHERE tenant_id = %(tenant)s
   AND id IN (SELECT id FROM atoms
              WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- atom_counts --
DELETE FROM atom_counts
 WHERE tenant_id = %(tenant)s
   AND (workflow, version, step, shard) IN (SELECT workflow, version, step, shard FROM atom_counts
                                            WHERE tenant_id = %(tenant)s LIMIT %(most)s)
RETURNING 1;

-- workflow_instances --
DELETE FROM workflow_instances
 WHERE tenant_id = %(tenant)s
   AND id IN (SELECT id FROM workflow_instances
              WHERE tenant_id = %(tenant)s LIMIT %(most)s)
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
    OR EXISTS (SELECT FROM superseded WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM inputs_from_outside WHERE tenant_id = %(tenant)s)
    OR EXISTS (SELECT FROM outside_readers WHERE tenant_id = %(tenant)s);

-- received_grants --
-- Between tenants: what others have granted to it by name; each tells both sides.
DELETE FROM grants
 WHERE id = ANY(ARRAY(SELECT id FROM grants WHERE grantee = %(tenant)s LIMIT %(most)s))
RETURNING 1;

-- usage_of_others --
-- Between tenants: what others have used of its streams is theirs to pay, and names it no more.
WITH gone AS (
    DELETE FROM usage_hours
     WHERE ctid = ANY(ARRAY(SELECT ctid
                              FROM usage_hours
                             WHERE provider_id = %(tenant)s
                               AND tenant_id <> %(tenant)s
                             LIMIT %(most)s))
    RETURNING *
)
INSERT INTO usage_hours (tenant_id, hour, service_object, stream, provider_id, updates_in,
                         computations, processor_us, stored_rows, stored_bytes, deliveries)
SELECT gone.tenant_id, gone.hour, coalesce(own.id, ''),
       CASE WHEN own.id IS NULL THEN '' ELSE gone.stream END AS kept_stream, 0,
       sum(updates_in), counts_summed(computations), sum(processor_us), sum(stored_rows),
       sum(stored_bytes), sum(deliveries)
  FROM gone
  LEFT JOIN service_objects AS own ON own.id = gone.service_object
   AND own.tenant_id = gone.tenant_id
 GROUP BY gone.tenant_id, gone.hour, own.id, kept_stream
 ORDER BY gone.tenant_id, gone.hour, coalesce(own.id, ''), kept_stream
    ON CONFLICT (tenant_id, hour, service_object, stream, provider_id, grant_id) DO UPDATE
   SET updates_in = usage_hours.updates_in + excluded.updates_in,
       computations = counts_added(usage_hours.computations, excluded.computations),
       processor_us = usage_hours.processor_us + excluded.processor_us,
       stored_rows = usage_hours.stored_rows + excluded.stored_rows,
       stored_bytes = usage_hours.stored_bytes + excluded.stored_bytes,
       deliveries = usage_hours.deliveries + excluded.deliveries
RETURNING 1;

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
), taken_in AS (
    DELETE FROM marks WHERE tenant_id = %(tenant)s
)
DELETE FROM tenants
 WHERE id = %(tenant)s
   AND deleted_at IS NOT NULL;
