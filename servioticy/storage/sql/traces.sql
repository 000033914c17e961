-- at --
-- The updates of these streams with just these timestamps; the document of those that are short.
-- When a row was stored the server knows, of each transaction, if it keeps that: no row has it.
SELECT wanted.stream_id, wanted."timestamp", found.version, found.bytes, found.document,
       found.log_partition, found.log_offset, found.stored_at
  FROM unnest(%(tenants)s::bigint[], %(stream_ids)s::bigint[], %(timestamps)s::bigint[])
       AS wanted (tenant_id, stream_id, "timestamp")
 CROSS JOIN LATERAL (
       SELECT version, octet_length(document::text) AS bytes,
              CASE WHEN octet_length(document::text) <= %(bytes)s THEN document::text END AS document,
              log_partition, log_offset,
              CASE WHEN current_setting('track_commit_timestamp')::boolean
                   THEN (extract(epoch FROM pg_xact_commit_timestamp(updates.xmin)) * 1000)::bigint
               END AS stored_at
         FROM updates
        WHERE updates.stream_id = (
                  SELECT stored_as FROM readable_streams WHERE id = wanted.stream_id)
          AND updates.tenant_id = wanted.tenant_id
          AND updates."timestamp" >= (
                  SELECT kept_from FROM kept_histories WHERE id = wanted.stream_id)
          AND updates."timestamp" = wanted."timestamp") AS found;

-- until --
-- The newest timestamp that each of these streams has up to another one.
SELECT wanted.stream_id, wanted.until, newest."timestamp"
  FROM unnest(%(tenants)s::bigint[], %(stream_ids)s::bigint[], %(timestamps)s::bigint[])
       AS wanted (tenant_id, stream_id, until)
 CROSS JOIN LATERAL (
       SELECT "timestamp"
         FROM updates
        WHERE updates.stream_id = (
                  SELECT stored_as FROM readable_streams WHERE id = wanted.stream_id)
          AND updates.tenant_id = wanted.tenant_id
          AND "timestamp" <= wanted.until
        ORDER BY "timestamp" DESC
        LIMIT 1) AS newest;

-- verdicts --
-- How computations of a tenant's composite streams ended, with the last of each kind.
SELECT wanted.stream_id, verdict, last::text
  FROM unnest(%(stream_ids)s::bigint[]) AS wanted (stream_id)
  JOIN verdicts ON verdicts.stream_id = (
           SELECT stored_as FROM readable_streams WHERE id = wanted.stream_id)
   AND verdicts.tenant_id = %(tenant)s
 ORDER BY wanted.stream_id, verdict;
