-- of_all --
-- What operators let tenants have of one thing; by whose it is.
SELECT tenant_id, most
  FROM quotas
 WHERE name = %(name)s;

-- used_up --
-- Who has used up this quota of the hour, of deliveries or of processor time, how much that is, and
-- the seconds that the hour has yet.
SELECT tenant_id, coalesce(most, %(most)s),
       (this_hour() / 1000 + 3600 - extract(epoch FROM now()))::bigint
  FROM (SELECT tenant_id,
               CASE %(name)s
               WHEN 'deliveries' THEN deliveries
               WHEN 'processor-seconds' THEN processor_us / 1000000 END AS amount
          FROM used_amounts
         WHERE hour = this_hour()) AS used
  FULL JOIN (SELECT tenant_id, most
               FROM quotas
              WHERE name = %(name)s) AS own USING (tenant_id)
 WHERE coalesce(amount, 0) >= coalesce(most, %(most)s);

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
