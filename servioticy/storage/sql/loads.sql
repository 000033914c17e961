-- partitions --
-- Between tenants: partitions are everybody's.
-- Service Objects by partition, and microseconds of their work since.
SELECT greatest(route_partition, ~route_partition), count(*), coalesce(sum(used_us), 0)::bigint
  FROM service_objects
  LEFT JOIN (SELECT service_object,
                    sum(processor_us + stored_rows * %(row_us)s + ended * %(computation_us)s)
                    AS used_us
               FROM usage_hours
              CROSS JOIN LATERAL (
                    SELECT coalesce(sum(value::bigint), 0) AS ended
                      FROM jsonb_each_text(computations)) AS counted
              WHERE hour >= %(since)s
              GROUP BY service_object) AS used ON service_object = id
 WHERE deleted_at IS NULL
 GROUP BY greatest(route_partition, ~route_partition);

-- components --
-- Between tenants: partitions are everybody's.
-- Those whose Service Objects have had most to do since, and how many these are.
SELECT tenant_id, tenants.name, component, log_partition, used_us, size
  FROM (SELECT tenant_id, component, min(greatest(route_partition, ~route_partition))
               AS log_partition, sum(used_us)::bigint AS used_us
          FROM (SELECT service_object,
                       sum(processor_us + stored_rows * %(row_us)s + ended * %(computation_us)s)
                       AS used_us
                  FROM usage_hours
                 CROSS JOIN LATERAL (
                       SELECT coalesce(sum(value::bigint), 0) AS ended
                         FROM jsonb_each_text(computations)) AS counted
                 WHERE hour >= %(since)s
                 GROUP BY service_object) AS used
          JOIN service_objects ON id = service_object
         WHERE deleted_at IS NULL
           AND used_us > 0
         GROUP BY tenant_id, component
         ORDER BY 4 DESC, component
         LIMIT %(most)s) AS busiest
 CROSS JOIN LATERAL (
       SELECT count(*) AS size
         FROM service_objects
        WHERE service_objects.component = busiest.component
          AND service_objects.tenant_id = busiest.tenant_id
          AND deleted_at IS NULL) AS counted
  JOIN tenants ON tenants.id = tenant_id
 ORDER BY used_us DESC, component;

-- members --
-- Between tenants: partitions are everybody's.
-- The Service Objects of these components, microseconds of the work of each since, and whether
-- what was changed of it last is in force.
SELECT component, service_objects.id, coalesce(used_us, 0)::bigint,
       deleted_at IS NULL AND active_version IS NOT DISTINCT FROM service_objects.version
       AND active_change >= coalesce(named_by, 0), deleted_at IS NULL
  FROM service_objects
  LEFT JOIN definitions ON definitions.service_object = service_objects.id
   AND definitions.version = service_objects.version
   AND definitions.tenant_id = service_objects.tenant_id
  LEFT JOIN LATERAL (
       SELECT sum(processor_us + stored_rows * %(row_us)s + ended * %(computation_us)s) AS used_us
         FROM usage_hours
        CROSS JOIN LATERAL (
              SELECT coalesce(sum(value::bigint), 0) AS ended
                FROM jsonb_each_text(computations)) AS counted
        WHERE usage_hours.tenant_id = service_objects.tenant_id
          AND usage_hours.hour >= %(since)s
          AND usage_hours.service_object = service_objects.id) AS used ON true
 WHERE component = ANY(%(components)s::text[])
 ORDER BY sequence;

-- edges --
-- Between tenants: partitions are everybody's.
-- Who reads whom within these components.
SELECT DISTINCT reading.component, reading.id, source.id
  FROM service_objects AS reading
  JOIN graph_edges ON graph_edges.reader = reading.id
   AND graph_edges.tenant_id = reading.tenant_id
  JOIN streams ON streams.id = stream_id
   AND streams.tenant_id = reading.tenant_id
  JOIN service_objects AS source ON source.id = streams.service_object
   AND source.tenant_id = reading.tenant_id
   AND source.component = reading.component
 WHERE reading.component = ANY(%(components)s::text[])
   AND reading.id <> source.id;

-- component_of --
SELECT component
  FROM service_objects
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
   AND deleted_at IS NULL;

-- load_of --
-- Microseconds of the work of a component since.
SELECT coalesce(sum(processor_us + stored_rows * %(row_us)s + ended * %(computation_us)s), 0)::bigint
  FROM service_objects
  JOIN usage_hours ON usage_hours.tenant_id = service_objects.tenant_id
   AND usage_hours.service_object = service_objects.id
   AND hour >= %(since)s
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(value::bigint), 0) AS ended
         FROM jsonb_each_text(computations)) AS counted
 WHERE component = %(component)s
   AND service_objects.tenant_id = %(tenant)s
   AND deleted_at IS NULL;
