-- make --
-- Codes that differ in nothing else, and the devices that they are for; no row where there would
-- be more uses than there may be: of all codes of the tenant, or of those of the Service Object
-- that have not ended. Those of a Service Object, and what devices get for them, end when the
-- token of their maker does.
WITH maker AS (
    SELECT expires_at AS tokens_end
      FROM tokens
     WHERE id = %(maker)s
       AND tenant_id = %(tenant)s
       AND %(service_object)s::text IS NOT NULL
), made AS (
    INSERT INTO claim_codes (id, tenant_id, digest, template, service_object, parameters, allowed,
                             device_as, pattern, listed, uses, created_at, expires_at,
                             tokens_end)
    SELECT new.id, %(tenant)s, new.digest, %(template)s, %(service_object)s, %(parameters)s::json,
           %(allowed)s::text[], %(device_as)s, %(pattern)s, %(devices)s::text[] IS NOT NULL,
           %(uses)s, %(now)s, least(now() + %(seconds)s * interval '1 second', tokens_end),
           tokens_end
      FROM unnest(%(ids)s::text[], %(digests)s::bytea[]) AS new (id, digest)
      LEFT JOIN maker ON true
     WHERE %(most)s >= %(uses)s::bigint * cardinality(%(ids)s::text[]) + (
               SELECT coalesce(sum(uses), 0)
                 FROM claim_codes
                WHERE tenant_id = %(tenant)s
                  AND claim_codes.expires_at >= now() - %(days)s * interval '1 day')
       AND (%(service_object)s::text IS NULL
            OR %(most_of_one)s >= %(uses)s::bigint * cardinality(%(ids)s::text[]) + (
               SELECT coalesce(sum(uses), 0)
                 FROM claim_codes
                WHERE service_object = %(service_object)s
                  AND tenant_id = %(tenant)s
                  AND claim_codes.expires_at > now()))
    RETURNING id, expires_at
), listed AS (
    INSERT INTO claims (code, device, tenant_id)
    SELECT made.id, device, %(tenant)s
      FROM made
     CROSS JOIN unnest(%(devices)s::text[]) AS device
)
SELECT expires_at
  FROM made;

-- forget --
-- Some of those that have ended so many days ago.
DELETE FROM claim_codes
 WHERE tenant_id = %(tenant)s
   AND id IN (SELECT id
                FROM claim_codes
               WHERE tenant_id = %(tenant)s
                 AND expires_at < now() - %(days)s * interval '1 day'
               LIMIT 1000);

-- listed --
SELECT id, template, service_object, parameters::text, allowed, device_as, pattern, listed, uses,
       used, created_at, expires_at
  FROM claim_codes
 WHERE tenant_id = %(tenant)s
   AND id > %(after)s
 ORDER BY id
 LIMIT %(limit)s;

-- code --
SELECT id, template, service_object, parameters::text, allowed, device_as, pattern, listed, uses,
       used, created_at, expires_at
  FROM claim_codes
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s;

-- claims --
-- Devices that have claimed by a code, and those of its list.
SELECT device, service_object, token_id, claimed_at
  FROM claims
 WHERE code = %(id)s
   AND tenant_id = %(tenant)s
   AND device > %(after)s
 ORDER BY device
 LIMIT %(limit)s;

-- revoke --
DELETE FROM claim_codes
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
RETURNING id;
