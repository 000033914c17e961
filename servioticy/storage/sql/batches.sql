-- streams --
-- Those of the named streams that are the caller's: sending is the owner's right alone.
SELECT service_objects.id, streams.name, service_objects.public, service_objects.version,
       greatest(service_objects.route_partition, ~service_objects.route_partition), streams.id
  FROM unnest(%(service_objects)s::text[], %(streams)s::text[]) AS wanted (service_object, stream)
  JOIN service_objects ON service_objects.id = wanted.service_object
   AND service_objects.tenant_id = %(tenant)s
   AND deleted_at IS NULL
  JOIN streams ON streams.service_object = service_objects.id AND streams.name = wanted.stream
   AND streams.tenant_id = service_objects.tenant_id;
