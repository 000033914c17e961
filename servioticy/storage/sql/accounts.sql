-- account --
-- Of tenants that are still there, in the order of the key, as all who add to these accounts: so
-- none waits for one that waits for it. What was woken by a tenant that is going, or has gone,
-- names nothing of it.
INSERT INTO usage_hours (tenant_id, hour, service_object, stream, provider_id, grant_id,
                         updates_in, stored_rows, stored_bytes, processor_us, computations)
SELECT u.tenant_id, this_hour(), u.service_object, u.stream,
       coalesce(provider.id, 0) AS provider_id,
       CASE WHEN provider.id IS NULL THEN '' ELSE u.grant_id END AS grant_id,
       sum(u.updates_in), sum(u.stored_rows), sum(u.stored_bytes), sum(u.processor_us),
       CASE count(*) WHEN 1 THEN min(u.computations)::jsonb
            ELSE (SELECT counts_summed(each::jsonb)
                    FROM unnest(array_agg(u.computations)) AS each) END
  FROM unnest(%(tenants)s::bigint[], %(service_objects)s::text[], %(streams)s::text[],
              %(providers)s::bigint[], %(grants)s::text[], %(updates_in)s::bigint[],
              %(stored_rows)s::bigint[], %(stored_bytes)s::bigint[], %(processor_us)s::bigint[],
              %(computations)s::text[])
       AS u (tenant_id, service_object, stream, provider_id, grant_id, updates_in, stored_rows,
             stored_bytes, processor_us, computations)
  JOIN tenants ON tenants.id = u.tenant_id
  LEFT JOIN tenants AS provider ON provider.id = u.provider_id
   AND provider.deleted_at IS NULL
 GROUP BY 1, 2, 3, 4, 5, 6
 ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (tenant_id, hour, service_object, stream, provider_id, grant_id) DO UPDATE
   SET updates_in = usage_hours.updates_in + excluded.updates_in,
       stored_rows = usage_hours.stored_rows + excluded.stored_rows,
       stored_bytes = usage_hours.stored_bytes + excluded.stored_bytes,
       processor_us = usage_hours.processor_us + excluded.processor_us,
       computations = counts_added(usage_hours.computations, excluded.computations);

-- account_processor --
-- In the totals of streams that are still there.
INSERT INTO usage (tenant_id, stream_id, processor_us)
SELECT u.tenant_id, stored_as, sum(u.processor_us)
  FROM unnest(%(tenants)s::bigint[], %(service_objects)s::text[], %(streams)s::text[],
              %(processor_us)s::bigint[])
       AS u (tenant_id, service_object, stream, processor_us)
  JOIN readable_streams ON readable_streams.service_object = u.service_object
   AND name = u.stream
   AND readable_streams.tenant_id = u.tenant_id
 WHERE u.processor_us > 0
 GROUP BY u.tenant_id, stored_as
 ORDER BY stored_as
    ON CONFLICT (stream_id) DO UPDATE
   SET processor_us = usage.processor_us + excluded.processor_us;

-- account_stored --
-- Of tenants that are still there: what was stored, less what it has taken the place of.
INSERT INTO stored_amounts (tenant_id, bytes)
SELECT u.tenant_id, sum(u.stored_bytes - u.replaced_bytes)
  FROM unnest(%(tenants)s::bigint[], %(stored_bytes)s::bigint[], %(replaced_bytes)s::bigint[])
       AS u (tenant_id, stored_bytes, replaced_bytes)
  JOIN tenants ON tenants.id = u.tenant_id
 GROUP BY u.tenant_id
HAVING sum(u.stored_bytes - u.replaced_bytes) <> 0
 ORDER BY u.tenant_id
    ON CONFLICT (tenant_id) DO UPDATE
   SET bytes = greatest(0, stored_amounts.bytes + excluded.bytes);

-- account_watched --
-- By the minute, of streams that their tenant has measured; what is older than a day goes.
WITH measured AS (
    SELECT u.tenant_id, aspects.id AS aspect, sum(u.stored_rows) AS stored_rows,
           sum(u.stored_bytes) AS stored_bytes, sum(u.processor_us) AS processor_us,
           counts_summed(u.computations::jsonb) AS computations
      FROM unnest(%(tenants)s::bigint[], %(service_objects)s::text[], %(streams)s::text[],
                  %(stored_rows)s::bigint[], %(stored_bytes)s::bigint[],
                  %(processor_us)s::bigint[], %(computations)s::text[])
           AS u (tenant_id, service_object, stream, stored_rows, stored_bytes, processor_us,
                 computations)
      JOIN aspects ON aspects.tenant_id = u.tenant_id
       AND aspects.service_object = u.service_object
       AND aspects.stream = u.stream
     GROUP BY 1, 2
), gone AS (
    DELETE FROM aspect_minutes
     USING measured
     WHERE aspect_minutes.tenant_id = measured.tenant_id
       AND aspect_minutes.aspect = measured.aspect
       AND minute <= this_minute() - 86400000
)
INSERT INTO aspect_minutes (tenant_id, aspect, minute, stored_rows, stored_bytes, processor_us,
                            computations)
SELECT tenant_id, aspect, this_minute(), stored_rows, stored_bytes, processor_us, computations
  FROM measured
 ORDER BY 1, 2
    ON CONFLICT (tenant_id, aspect, minute) DO UPDATE
   SET stored_rows = aspect_minutes.stored_rows + excluded.stored_rows,
       stored_bytes = aspect_minutes.stored_bytes + excluded.stored_bytes,
       processor_us = aspect_minutes.processor_us + excluded.processor_us,
       computations = counts_added(aspect_minutes.computations, excluded.computations);

-- account_in_all --
-- Computations and processor time, for the quotas of each tenant: in the order in which all note
-- them.
SELECT note_used(tenant, ended, used, 0)
  FROM (SELECT tenant, sum(times)::bigint AS ended, sum(processor_us)::bigint AS used
          FROM unnest(%(tenants)s::bigint[], %(times)s::bigint[], %(processor_us)s::bigint[])
               AS u (tenant, times, processor_us)
         GROUP BY tenant
        HAVING sum(times) + sum(processor_us) > 0
         ORDER BY tenant) AS summed;
