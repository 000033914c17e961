-- readable --
-- Between tenants: what is granted is others' to read, as `stream_readers` says.
-- Those of the named streams that the caller may read.
SELECT service_objects.id, streams.name, service_objects.tenant_id, true AS granted,
       service_objects.version,
       greatest(service_objects.route_partition, ~service_objects.route_partition), streams.id
  FROM unnest(%(service_objects)s::text[], %(streams)s::text[]) AS wanted (service_object, stream)
  JOIN service_objects ON service_objects.id = wanted.service_object
   AND deleted_at IS NULL
  JOIN streams ON streams.service_object = service_objects.id AND streams.name = wanted.stream
   AND streams.tenant_id = service_objects.tenant_id
  JOIN stream_readers ON stream_readers.stream_id = streams.id
   AND stream_readers.tenant_id = %(tenant)s;

-- newest --
-- The last update of each of these streams that has one.
SELECT wanted.stream_id, "timestamp", document::text, version
  FROM unnest(%(tenants)s::bigint[], %(stream_ids)s::bigint[]) AS wanted (tenant_id, stream_id)
 CROSS JOIN LATERAL (
       SELECT "timestamp", document, version
         FROM updates
        WHERE updates.stream_id = (
                  SELECT stored_as FROM readable_streams WHERE id = wanted.stream_id)
          AND updates.tenant_id = wanted.tenant_id
        ORDER BY "timestamp" DESC
        LIMIT 1) AS newest;
