-- add_tenant --
INSERT INTO tenants (name)
VALUES (%(name)s)
ON CONFLICT (name) DO NOTHING
RETURNING id;

-- tenant_named --
SELECT id
  FROM tenants
 WHERE name = %(name)s;

-- add_token --
INSERT INTO tokens (digest, tenant_id)
VALUES (%(digest)s, %(tenant)s);

-- tenant_of_token --
SELECT tenant_id
  FROM tokens
 WHERE digest = %(digest)s
   AND revoked_at IS NULL;

-- addressed_stream --
-- All that a request about a stream needs, in one round trip: who asks, and what it names.
-- No row: the token is unknown. Id or stream id null: that does not exist.
SELECT tokens.tenant_id AS caller, service_objects.id, service_objects.tenant_id AS owner,
       coalesce(service_objects.public, false) AS public,
       coalesce(service_objects.version, 0) AS version,
       coalesce(service_objects.route_partition, 0) AS route_partition,
       streams.id AS stream_id
  FROM tokens
  LEFT JOIN service_objects ON service_objects.id = %(service_object)s
  LEFT JOIN streams ON streams.service_object = service_objects.id AND streams.name = %(stream)s
 WHERE tokens.digest = %(digest)s
   AND tokens.revoked_at IS NULL;

-- document --
SELECT document::text
  FROM definitions
 WHERE service_object = %(service_object)s
   AND version = %(version)s;

-- ids_of_tenant --
SELECT id
  FROM service_objects
 WHERE tenant_id = %(tenant)s
 ORDER BY sequence;

-- lock_changes --
-- One change of the graph at a time, over all API processes: the order of control records.
SELECT pg_advisory_lock(%(key)s);

-- unlock_changes --
SELECT pg_advisory_unlock(%(key)s);

-- service_objects_named --
SELECT service_objects.id, tenant_id, public, component, route_partition,
       ARRAY(SELECT name FROM streams WHERE service_object = service_objects.id) AS streams
  FROM service_objects
 WHERE id = ANY(%(ids)s);

-- members_of_components --
SELECT id, component, route_partition
  FROM service_objects
 WHERE component = ANY(%(components)s);

-- quietest_partition --
-- New components go where the fewest Service Objects are.
SELECT partition
  FROM generate_series(0, %(partitions)s - 1) AS partition
  LEFT JOIN service_objects ON route_partition = partition
 GROUP BY partition
 ORDER BY count(service_objects.id), partition
 LIMIT 1;

-- add_service_object --
INSERT INTO service_objects
       (id, tenant_id, public, created_at, updated_at, version, component,
        route_partition, owner_partition)
VALUES (%(id)s, %(tenant)s, %(public)s, %(now)s, %(now)s, 1, %(component)s,
        %(partition)s, %(partition)s);

-- add_definition --
INSERT INTO definitions (service_object, version, tenant_id, document, created_at)
VALUES (%(id)s, %(version)s, %(tenant)s, %(document)s, %(now)s);

-- add_streams --
INSERT INTO streams (tenant_id, service_object, name)
SELECT %(tenant)s, %(id)s, unnest(%(names)s::text[]);

-- join_components --
UPDATE service_objects
   SET component = %(component)s
 WHERE component = ANY(%(components)s);

-- add_pending_change --
INSERT INTO pending_changes (tenant_id, change)
VALUES (%(tenant)s, %(change)s)
RETURNING id;

-- pending_changes --
SELECT id, change::text
  FROM pending_changes
 ORDER BY id;

-- route --
-- From now on the API appends their updates there; the control records are in the log.
UPDATE service_objects
   SET route_partition = %(partition)s
 WHERE id = ANY(%(ids)s);

-- drop_pending_change --
DELETE FROM pending_changes
 WHERE id = %(change)s;

-- add_subscription --
INSERT INTO subscriptions
       (id, tenant_id, stream_id, callback, destination, document, created_at)
VALUES (%(id)s, %(tenant)s, %(stream)s, %(callback)s, %(destination)s, %(document)s, %(now)s)
ON CONFLICT DO NOTHING
RETURNING id;

-- add_internal_subscriptions --
-- What a document's groups subscribe it to (contract 2.1).
INSERT INTO subscriptions
       (id, tenant_id, stream_id, callback, destination, document, created_at)
SELECT replace(gen_random_uuid()::text, '-', ''), %(tenant)s, streams.id, 'internal', %(id)s,
       json_build_object('customFields', json_build_object('groupId', wanted.group_name)), %(now)s
  FROM unnest(%(groups)s::text[], %(sources)s::text[], %(names)s::text[])
       AS wanted (group_name, source, name)
  JOIN streams ON streams.service_object = wanted.source AND streams.name = wanted.name;
