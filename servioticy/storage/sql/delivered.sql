-- deliver --
-- Updates that were given to subscribers of these tenants.
INSERT INTO usage_hours (tenant_id, hour, service_object, stream, provider_id, grant_id,
                         deliveries)
SELECT d.tenant_id, this_hour(), d.service_object, d.stream, d.provider_id, d.grant_id,
       d.deliveries
  FROM unnest(%(receivers)s::bigint[], %(providers)s::bigint[], %(service_objects)s::text[],
              %(streams)s::text[], %(grants)s::text[], %(deliveries)s::bigint[])
       AS d (tenant_id, provider_id, service_object, stream, grant_id, deliveries)
  JOIN tenants ON tenants.id = d.tenant_id
 ORDER BY d.tenant_id, d.service_object, d.stream, d.provider_id, d.grant_id
    ON CONFLICT (tenant_id, hour, service_object, stream, provider_id, grant_id) DO UPDATE
   SET deliveries = usage_hours.deliveries + excluded.deliveries;

-- deliver_in_all --
-- The same, for the quotas of each tenant.
SELECT note_used(tenant, 0, 0, given)
  FROM (SELECT tenant, sum(deliveries)::bigint AS given
          FROM unnest(%(receivers)s::bigint[], %(deliveries)s::bigint[]) AS d (tenant, deliveries)
         GROUP BY tenant
         ORDER BY tenant) AS summed;
