-- outside_edges --
-- Between tenants: the edges are one's own, the streams are others'.
SELECT reader, streams.service_object, streams.name, source.tenant_id,
       greatest(source.route_partition, ~source.route_partition)
  FROM graph_edges
  JOIN streams ON streams.id = stream_id
   AND streams.tenant_id <> %(tenant)s
  JOIN service_objects AS source ON source.id = streams.service_object
   AND source.deleted_at IS NULL
 WHERE reader = ANY(%(ids)s::text[])
   AND graph_edges.tenant_id = %(tenant)s
 GROUP BY reader, streams.service_object, streams.name, source.tenant_id, source.route_partition;

-- still_moving --
-- Between tenants: the edges are one's own, the streams are others'.
-- Whether something that one of these reads of others, and may, does not come to where it is
-- computed from the last change on, or not all of it.
SELECT 1
  FROM graph_edges
  JOIN streams ON streams.id = stream_id
   AND streams.tenant_id <> %(tenant)s
  JOIN service_objects AS source ON source.id = streams.service_object
   AND source.deleted_at IS NULL
  JOIN service_objects AS moving ON moving.id = graph_edges.reader
   AND moving.tenant_id = graph_edges.tenant_id
  LEFT JOIN inputs_from_outside AS known ON known.reader = moving.id
   AND known.source = streams.service_object
   AND known.stream = streams.name
   AND known.tenant_id = moving.tenant_id
 WHERE graph_edges.reader = ANY(%(ids)s::text[])
   AND graph_edges.tenant_id = %(tenant)s
   AND (known.is_open IS NULL
        OR known.is_open
           AND (known.fed_in IS DISTINCT FROM moving.route_partition
                OR known.awaits_at IS NOT NULL))
 UNION ALL
-- Or whether anything of the tenant still comes to the partition that these leave: until all of it
-- has, what others send them there may be held.
SELECT 1
  FROM service_objects AS moving
  JOIN service_objects AS beside ON beside.tenant_id = moving.tenant_id
   AND beside.route_partition = moving.route_partition
  JOIN inputs_from_outside AS known ON known.reader = beside.id
   AND known.tenant_id = beside.tenant_id
   AND known.is_open
   AND (known.fed_in <> beside.route_partition OR known.awaits_at IS NOT NULL)
 WHERE moving.id = ANY(%(ids)s::text[])
   AND moving.tenant_id = %(tenant)s
 LIMIT 1;
