-- newest --
-- The newest timestamp of each of these streams that has updates.
SELECT wanted.tenant_id, wanted.stream_id, newest."timestamp"
  FROM unnest(%(tenants)s::bigint[], %(stream_ids)s::bigint[]) AS wanted (tenant_id, stream_id)
 CROSS JOIN LATERAL (
       SELECT "timestamp"
         FROM updates
        WHERE updates.stream_id = (
                  SELECT stored_as FROM readable_streams WHERE id = wanted.stream_id)
          AND updates.tenant_id = wanted.tenant_id
        ORDER BY "timestamp" DESC
        LIMIT 1) AS newest;

-- before --
-- The last update that each of these streams had before a timestamp.
SELECT wanted.tenant_id, wanted.stream_id, earlier."timestamp", earlier.document
  FROM unnest(%(tenants)s::bigint[], %(stream_ids)s::bigint[]) AS wanted (tenant_id, stream_id)
 CROSS JOIN LATERAL (
       SELECT "timestamp", document::text AS document
         FROM updates
        WHERE updates.stream_id = (
                  SELECT stored_as FROM readable_streams WHERE id = wanted.stream_id)
          AND updates.tenant_id = wanted.tenant_id
          AND "timestamp" < %(since)s
        ORDER BY "timestamp" DESC
        LIMIT 1) AS earlier;
