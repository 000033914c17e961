-- deliver --
-- Updates that were given to subscribers of these tenants. Those of a tenant that is going, or has
-- gone, name nothing of it.
INSERT INTO usage_hours (tenant_id, hour, service_object, stream, provider_id, grant_id,
                         deliveries)
SELECT d.tenant_id, this_hour(),
       CASE WHEN provider.id IS NULL THEN '' ELSE d.service_object END AS service_object,
       CASE WHEN provider.id IS NULL THEN '' ELSE d.stream END AS stream,
       coalesce(provider.id, 0) AS provider_id,
       CASE WHEN provider.id IS NULL THEN '' ELSE d.grant_id END AS grant_id, sum(d.deliveries)
  FROM unnest(%(receivers)s::bigint[], %(providers)s::bigint[], %(service_objects)s::text[],
              %(streams)s::text[], %(grants)s::text[], %(deliveries)s::bigint[])
       AS d (tenant_id, provider_id, service_object, stream, grant_id, deliveries)
  JOIN tenants ON tenants.id = d.tenant_id
  LEFT JOIN tenants AS provider ON provider.id = d.provider_id
   AND provider.deleted_at IS NULL
 GROUP BY 1, 2, 3, 4, 5, 6
 ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (tenant_id, hour, service_object, stream, provider_id, grant_id) DO UPDATE
   SET deliveries = usage_hours.deliveries + excluded.deliveries;

-- deliver_in_all --
-- The same, for the quotas of each tenant.
SELECT note_used(tenant, 0, 0, given)
  FROM (SELECT tenant, sum(deliveries)::bigint AS given
          FROM unnest(%(receivers)s::bigint[], %(deliveries)s::bigint[]) AS d (tenant, deliveries)
         GROUP BY tenant
         ORDER BY tenant) AS summed;

-- spend --
-- Processor time of the conditions of these tenants' actions, by the streams that ask for them.
INSERT INTO usage_hours (tenant_id, hour, service_object, stream, provider_id, processor_us)
SELECT s.tenant_id, this_hour(), s.service_object, s.stream, s.tenant_id, s.processor_us
  FROM unnest(%(payers)s::bigint[], %(service_objects)s::text[], %(streams)s::text[],
              %(processor_us)s::bigint[])
       AS s (tenant_id, service_object, stream, processor_us)
  JOIN tenants ON tenants.id = s.tenant_id
 ORDER BY s.tenant_id, s.service_object, s.stream
    ON CONFLICT (tenant_id, hour, service_object, stream, provider_id, grant_id) DO UPDATE
   SET processor_us = usage_hours.processor_us + excluded.processor_us;

-- spend_in_all --
-- The same, for the quotas of each tenant.
SELECT note_used(tenant, 0, spent, 0)
  FROM (SELECT tenant, sum(processor_us)::bigint AS spent
          FROM unnest(%(payers)s::bigint[], %(processor_us)s::bigint[]) AS s (tenant, processor_us)
         GROUP BY tenant
         ORDER BY tenant) AS summed;
