-- summed --
-- Between tenants: a provider is told what others have used of its streams.
-- What the tenant has used in these hours, summed up by what is asked for, a page at a time; with
-- `provided`, what others have used of its streams: what they derive of them is counted, not named.
SELECT key, sum(updates_in)::bigint, sum(stored_rows)::bigint, sum(stored_bytes)::bigint,
       sum(processor_us)::bigint, sum(deliveries)::bigint, counts_summed(computations),
       count(DISTINCT (tenant_id, service_object, stream))
             FILTER (WHERE %(provided)s AND computations <> '{}'),
       count(DISTINCT tenant_id) FILTER (WHERE %(provided)s), sum(read_us)::bigint
  FROM (SELECT CASE %(by)s
               WHEN 'hour' THEN lpad(usage_hours.hour::text, 16, '0')
               WHEN 'day' THEN lpad((usage_hours.hour / 86400000 * 86400000)::text, 16, '0')
               WHEN 'serviceObject' THEN CASE WHEN named THEN service_object ELSE '' END
               WHEN 'stream' THEN CASE WHEN named THEN service_object || '/' || stream ELSE '' END
               WHEN 'provider' THEN CASE WHEN provider_id = %(tenant)s THEN 'own' ELSE 'others' END
               WHEN 'grant' THEN grant_id
               ELSE '' END COLLATE "C" AS key,
               tenant_id, service_object, stream, updates_in, stored_rows, stored_bytes, processor_us,
               deliveries, computations, read_us
          FROM usage_hours
         CROSS JOIN LATERAL (
               SELECT NOT %(provided)s OR EXISTS (
                      SELECT
                        FROM service_objects
                       WHERE id = usage_hours.service_object
                         AND tenant_id = %(tenant)s) AS named) AS known
         WHERE usage_hours.hour >= %(from)s
           AND usage_hours.hour <= %(to)s
           AND (grant_id = %(grant)s OR %(grant)s IS NULL)
           AND CASE WHEN %(provided)s
                    THEN provider_id = %(tenant)s AND usage_hours.tenant_id <> %(tenant)s
                    ELSE usage_hours.tenant_id = %(tenant)s END) AS used
 WHERE key > %(after)s OR %(after)s IS NULL
 GROUP BY key
 ORDER BY key
 LIMIT %(rows)s;

-- forget --
-- Between tenants: what is too old goes, whosesoever it is; some of it at once.
-- Some of what is older than it is kept.
DELETE FROM usage_hours
 WHERE ctid = ANY(ARRAY(
       SELECT ctid
         FROM usage_hours
        WHERE hour < %(before)s
        LIMIT %(most)s))
RETURNING hour;

-- forget_grants --
-- Between tenants: what is too old goes, whosesoever it is; some of it at once.
-- Grants that ended when all that was used by them is forgotten.
DELETE FROM ended_grants
 WHERE id = ANY(ARRAY(
       SELECT id
         FROM ended_grants
        WHERE ended_at < %(before)s
        LIMIT %(most)s))
RETURNING id;
