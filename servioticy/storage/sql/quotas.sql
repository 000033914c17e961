-- limits --
SELECT name, most
  FROM quotas
 WHERE tenant_id = %(tenant)s;

-- used --
-- What is metered: of the present hour, and how much is stored.
SELECT coalesce((SELECT sum(times::bigint)
                   FROM usage_hours
                  CROSS JOIN jsonb_each_text(computations) AS ended (verdict, times)
                  WHERE usage_hours.tenant_id = %(tenant)s AND hour = this_hour()), 0)::bigint,
       coalesce((SELECT sum(processor_us) / 1000000
                   FROM usage_hours
                  WHERE usage_hours.tenant_id = %(tenant)s AND hour = this_hour()), 0)::bigint,
       coalesce((SELECT sum(deliveries)
                   FROM usage_hours
                  WHERE usage_hours.tenant_id = %(tenant)s AND hour = this_hour()), 0)::bigint,
       coalesce((SELECT bytes
                   FROM stored_amounts
                  WHERE stored_amounts.tenant_id = %(tenant)s), 0)::bigint,
       (this_hour() / 1000 + 3600 - extract(epoch FROM now()))::bigint;

-- documents --
SELECT count(*)
  FROM service_objects
 WHERE tenant_id = %(tenant)s
   AND deleted_at IS NULL;

-- streams --
SELECT count(*)
  FROM streams
  JOIN service_objects ON service_objects.id = service_object
   AND service_objects.tenant_id = streams.tenant_id
   AND deleted_at IS NULL
 WHERE streams.tenant_id = %(tenant)s
   AND declared;

-- subscriptions --
SELECT count(*)
  FROM subscriptions
 WHERE tenant_id = %(tenant)s;

-- members --
SELECT count(*)
  FROM members
 WHERE tenant_id = %(tenant)s;

-- of_all --
-- What operators let tenants have of one thing; by whose it is.
SELECT tenant_id, most
  FROM quotas
 WHERE name = %(name)s;

-- set --
-- Between tenants: an operator names one.
INSERT INTO quotas (tenant_id, name, most)
SELECT id, %(quota)s, %(most)s
  FROM tenants
 WHERE name = %(name)s
    ON CONFLICT (tenant_id, name) DO UPDATE
   SET most = excluded.most
RETURNING tenant_id;

-- unset --
-- Between tenants: an operator names one.
DELETE FROM quotas
 USING tenants
 WHERE tenants.name = %(name)s
   AND quotas.tenant_id = tenants.id
   AND quotas.name = %(quota)s
RETURNING tenant_id;

-- of_tenant --
-- Between tenants: an operator names one.
-- Those of a tenant, and one row at least if there is such a tenant.
SELECT tenants.id, quotas.name, most
  FROM tenants
  LEFT JOIN quotas ON quotas.tenant_id = tenants.id
 WHERE tenants.name = %(name)s;
