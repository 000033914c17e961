-- submit --
-- Asked for twice under one id it is made once. What is forgotten for it is the oldest that need
-- not be delivered any more: first of those that failed at once, so that outputs that ask in vain,
-- however often, leave the others in their place. Where too much waits it is made only if it is to
-- be kept anyway, as one that has failed. The row tells whether there is such a Service Object,
-- whether too much waits for it or for its tenant, and whether the actuation is new.
WITH owner AS (
    SELECT service_objects.id
      FROM service_objects
     WHERE service_objects.id = %(service_object)s
       AND service_objects.tenant_id = %(tenant)s
       AND deleted_at IS NULL
       FOR SHARE
), own AS (
    SELECT count(*) >= %(most)s AS is_full
      FROM (SELECT
              FROM actuations
             WHERE service_object = %(service_object)s
               AND tenant_id = %(tenant)s
               AND state IN ('queued', 'sent')
               AND expires_at > %(now)s
             LIMIT %(most)s) AS waiting
), whole AS (
    SELECT count(*) >= %(most_of_tenant)s AS is_full
      FROM (SELECT
              FROM actuations
             WHERE tenant_id = %(tenant)s
               AND state IN ('queued', 'sent')
               AND expires_at > %(now)s
             LIMIT %(most_of_tenant)s) AS waiting
), forgotten AS (
    DELETE FROM actuations
     WHERE tenant_id = %(tenant)s
       AND id IN (SELECT id
                    FROM actuations
                   WHERE service_object = %(service_object)s
                     AND tenant_id = %(tenant)s
                     AND NOT (state IN ('queued', 'sent') AND expires_at > %(now)s)
                   ORDER BY state = 'failed' AND NOT times ? 'queued', sequence DESC
                  OFFSET %(kept)s - 1)
), said AS (
    SELECT CASE WHEN own.is_full OR whole.is_full OR %(failed)s THEN 'failed'
                ELSE 'queued'
           END AS state,
           CASE WHEN (own.is_full OR whole.is_full) AND NOT %(failed)s THEN 'failed: too many wait'
                ELSE %(status)s::text
           END AS status
      FROM own, whole
), made AS (
    INSERT INTO actuations (id, tenant_id, service_object, name, parameters, status, reports,
                            created_at, updated_at, state, times, expires_at, description)
    SELECT %(id)s, %(tenant)s, owner.id, %(action)s, %(parameters)s, said.status,
           jsonb_build_array(jsonb_build_object('status', said.status,
                                                'updatedAt', %(now)s::bigint)),
           %(now)s, %(now)s, said.state, jsonb_build_object(said.state, %(now)s::bigint),
           %(now)s + %(timeout)s::bigint * 1000, %(description)s
      FROM owner, said
     WHERE %(anyway)s
        OR said.state = 'queued'
        ON CONFLICT (id) DO NOTHING
    RETURNING id
)
SELECT EXISTS (SELECT FROM owner), own.is_full, whole.is_full, EXISTS (SELECT FROM made)
  FROM own, whole;

-- document --
-- The one in force; only of Service Objects of its tenant.
SELECT definitions.document::text
  FROM service_objects
  JOIN definitions ON definitions.service_object = service_objects.id
   AND definitions.version = service_objects.version
   AND definitions.tenant_id = service_objects.tenant_id
 WHERE service_objects.id = %(service_object)s
   AND service_objects.tenant_id = %(tenant)s
   AND deleted_at IS NULL;

-- actuation --
SELECT name, parameters, status, reports::text, created_at, updated_at, state, times::text,
       expires_at
  FROM actuations
 WHERE id = %(id)s
   AND service_object = %(service_object)s
   AND tenant_id = %(tenant)s;

-- newest --
-- Those of a Service Object that were asked for last, without what was said of them before.
SELECT id, name, status, created_at, updated_at, state, times::text, expires_at
  FROM actuations
 WHERE service_object = %(service_object)s
   AND tenant_id = %(tenant)s
 ORDER BY sequence DESC
 LIMIT %(most)s;

-- report --
-- What is said of it now; of what was said before the oldest goes where there is too much.
UPDATE actuations
   SET status = %(status)s, updated_at = %(now)s,
       reports = CASE WHEN jsonb_array_length(reports) >= %(kept)s THEN reports - 0 ELSE reports END
                || jsonb_build_array(jsonb_build_object('status', %(status)s::text,
                                                        'updatedAt', %(now)s::bigint)),
       state = CASE WHEN state = ANY(%(before)s) AND expires_at > %(now)s
                    THEN %(state)s
                    ELSE state
               END,
       times = CASE WHEN state = ANY(%(before)s) AND expires_at > %(now)s
                    THEN times || jsonb_build_object(%(state)s::text, %(now)s::bigint)
                    ELSE times
               END
 WHERE id = %(id)s
   AND service_object = %(service_object)s
   AND tenant_id = %(tenant)s
RETURNING id;

-- news --
-- Each transaction that the last look could not see has an id from where its snapshot began; so
-- nothing is missed, however long it takes to commit. There is always a row.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text, found.tenant_id, found.service_object,
       EXISTS (SELECT
                 FROM actuation_callbacks
                WHERE actuation_callbacks.service_object = found.service_object
                  AND actuation_callbacks.tenant_id = found.tenant_id)
  FROM (SELECT) AS always
  LEFT JOIN (
       SELECT tenant_id, service_object
         FROM actuations
        WHERE made_in >= %(since)s::xid8
          AND state = 'queued'
        UNION
       SELECT asked.tenant, asked.id
         FROM unnest(%(tenants)s::bigint[], %(service_objects)s::text[]) AS asked (tenant, id)
        WHERE EXISTS (
              SELECT
                FROM actuations
               WHERE actuations.service_object = asked.id
                 AND actuations.tenant_id = asked.tenant
                 AND state IN ('queued', 'sent'))
       ) AS found ON true;

-- waiting_for --
-- The devices of a tenant that have still something to get.
SELECT DISTINCT service_object
  FROM actuations
 WHERE tenant_id = %(tenant)s
   AND state IN ('queued', 'sent')
   AND expires_at > %(now)s;

-- calling --
-- Those for which something waits that somebody is to be called with.
SELECT actuation_callbacks.tenant_id, actuation_callbacks.service_object
  FROM actuation_callbacks
 WHERE EXISTS (SELECT
                 FROM actuations
                WHERE actuations.service_object = actuation_callbacks.service_object
                  AND actuations.tenant_id = actuation_callbacks.tenant_id
                  AND state IN ('queued', 'sent')
                  AND expires_at > %(now)s);

-- callback --
SELECT callback::text, secrets::text
  FROM actuation_callbacks
 WHERE service_object = %(service_object)s
   AND tenant_id = %(tenant)s;

-- exchange_secrets --
-- Nothing where somebody else has exchanged them meanwhile.
UPDATE actuation_callbacks
   SET secrets = %(after)s
 WHERE service_object = %(service_object)s
   AND tenant_id = %(tenant)s
   AND secrets::jsonb = %(before)s::jsonb
RETURNING service_object;

-- waiting --
-- The first ones of each of these devices, in order.
SELECT asked.id, found.id, parameters, description, created_at, expires_at
  FROM unnest(%(service_objects)s::text[]) AS asked (id)
 CROSS JOIN LATERAL (
       SELECT actuations.id, parameters, description, created_at, expires_at, sequence
         FROM actuations
        WHERE service_object = asked.id
          AND tenant_id = %(tenant)s
          AND state IN ('queued', 'sent')
          AND expires_at > %(now)s
        ORDER BY sequence
        LIMIT %(most)s
       ) AS found
 ORDER BY asked.id, found.sequence;

-- move --
UPDATE actuations
   SET state = %(state)s,
       times = times || jsonb_build_object(%(state)s::text, %(now)s::bigint)
 WHERE id = ANY(%(ids)s)
   AND tenant_id = %(tenant)s
   AND state = ANY(%(before)s)
   AND expires_at > %(now)s;
