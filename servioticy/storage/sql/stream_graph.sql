-- nodes --
-- Between tenants: the stream graph reaches from one to the other.
SELECT service_objects.id, tenant_id, public, revision, component,
       greatest(route_partition, ~route_partition),
       ARRAY(SELECT name FROM streams
              WHERE service_object = service_objects.id AND declared) AS streams,
       (SELECT json_agg(json_build_array(grants.id, grantee, stream, derived_only))
          FROM grants
         WHERE grants.service_object = service_objects.id
           AND revoked_at IS NULL
           AND (expires_at IS NULL OR expires_at > extract(epoch FROM now()) * 1000)) AS grants
  FROM service_objects
 WHERE id = ANY(%(ids)s::text[])
   AND deleted_at IS NULL;

-- readers --
-- Between tenants: the stream graph reaches from one to the other.
-- Which groups of other Service Objects name these streams, and may read them; those of one tenant
-- first, if one is named, and no more than are wanted, if that is.
SELECT service_objects.id, service_objects.tenant_id, streams.name
  FROM streams
  JOIN graph_edges ON graph_edges.stream_id = streams.id
  JOIN service_objects ON service_objects.id = reader AND service_objects.deleted_at IS NULL
  JOIN stream_derivers ON stream_derivers.stream_id = streams.id
   AND stream_derivers.tenant_id = service_objects.tenant_id
 WHERE streams.service_object = %(service_object)s
   AND streams.name = ANY(%(streams)s::text[])
   AND reader <> %(service_object)s
 ORDER BY service_objects.tenant_id IS NOT DISTINCT FROM %(first)s::bigint DESC,
       service_objects.sequence
 LIMIT %(most)s::bigint;

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

-- grants --
-- Between tenants: the stream graph reaches from one to the other.
-- What others are granted of these Service Objects.
SELECT service_object, id, grantee, stream, derived_only
  FROM grants
 WHERE service_object = ANY(%(ids)s::text[])
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > extract(epoch FROM now()) * 1000);

-- related --
-- Between tenants: the stream graph reaches from one to the other.
SELECT id, tenant_id, sequence, version
  FROM service_objects
 WHERE id = ANY(%(ids)s::text[])
   AND deleted_at IS NULL;
