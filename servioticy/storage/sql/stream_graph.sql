-- nodes --
-- Between tenants: the stream graph reaches from one to the other.
SELECT service_objects.id, tenant_id, public, revision, component, route_partition,
       ARRAY(SELECT name FROM streams
              WHERE service_object = service_objects.id AND declared) AS streams
  FROM service_objects
 WHERE id = ANY(%(ids)s::text[])
   AND deleted_at IS NULL;

-- readers --
-- Between tenants: the stream graph reaches from one to the other.
-- Which groups of other Service Objects name these streams, and may read them.
SELECT service_objects.id, service_objects.tenant_id, streams.name
  FROM streams
  JOIN graph_edges ON graph_edges.stream_id = streams.id
  JOIN service_objects ON service_objects.id = reader AND service_objects.deleted_at IS NULL
  JOIN readers ON readers.service_object = streams.service_object
   AND readers.tenant_id = service_objects.tenant_id
 WHERE streams.service_object = %(service_object)s
   AND streams.name = ANY(%(streams)s::text[])
   AND reader <> %(service_object)s
 ORDER BY service_objects.sequence;

-- sources_of --
-- Between tenants: the stream graph reaches from one to the other.
-- Whose streams the groups of these Service Objects read; no more than are wanted.
SELECT DISTINCT streams.service_object
  FROM graph_edges
  JOIN streams ON streams.id = stream_id
 WHERE reader = ANY(%(ids)s::text[])
 LIMIT %(most)s;

-- readers_of --
-- Between tenants: the stream graph reaches from one to the other.
-- Whose groups read a stream of these Service Objects; no more than are wanted.
SELECT DISTINCT reader
  FROM streams
  JOIN graph_edges ON stream_id = streams.id
 WHERE service_object = ANY(%(ids)s::text[])
 LIMIT %(most)s;

-- related --
-- Between tenants: the stream graph reaches from one to the other.
SELECT id, tenant_id, sequence, version
  FROM service_objects
 WHERE id = ANY(%(ids)s::text[])
   AND deleted_at IS NULL;
