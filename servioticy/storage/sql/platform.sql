-- names --
-- Between tenants: who operates the platform is told which tenants press.
SELECT id, name
  FROM tenants
 WHERE id = ANY(%(ids)s::bigint[]);

-- slowest --
-- Between tenants: who operates the platform is told whose code takes most of the processor.
-- Streams by what their code has taken since; in all, or for each computation in which it ran.
SELECT tenants.name, service_object, stream, used_us, ran
  FROM (SELECT tenant_id, service_object, stream, sum(processor_us)::bigint AS used_us,
               sum(times)::bigint AS ran
          FROM usage_hours
         CROSS JOIN LATERAL (
               SELECT coalesce(sum(value::bigint), 0) AS times
                 FROM jsonb_each_text(computations)
                WHERE key = ANY(%(ran)s)) AS counted
         WHERE hour >= %(from)s
           AND processor_us > 0
         GROUP BY tenant_id, service_object, stream) AS used
  JOIN tenants ON tenants.id = tenant_id
 ORDER BY CASE %(by)s WHEN 'each' THEN used_us / nullif(ran, 0)::float8 ELSE used_us END
          DESC NULLS LAST, service_object, stream
 LIMIT %(rows)s;

-- name --
-- What an operator calls a tenant.
SELECT name
  FROM tenants
 WHERE id = %(tenant)s;
