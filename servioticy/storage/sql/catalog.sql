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
  LEFT JOIN service_objects ON service_objects.id = %(service_object)s AND deleted_at IS NULL
  LEFT JOIN streams ON streams.service_object = service_objects.id AND streams.name = %(stream)s
 WHERE tokens.digest = %(digest)s
   AND tokens.revoked_at IS NULL;

-- document --
SELECT document::text
  FROM definitions
 WHERE service_object = %(service_object)s
   AND version = %(version)s;

-- documents --
SELECT service_object, definitions.version, document::text
  FROM unnest(%(ids)s::text[], %(versions)s::integer[]) AS wanted (id, version)
  JOIN definitions ON service_object = wanted.id AND definitions.version = wanted.version;

-- ids_of_tenant --
SELECT id
  FROM service_objects
 WHERE tenant_id = %(tenant)s
   AND deleted_at IS NULL
 ORDER BY sequence;

-- current --
SELECT service_objects.version, revision, document::text, custom_fields::text, updated_at
  FROM service_objects
  JOIN definitions ON service_object = id AND definitions.version = service_objects.version
 WHERE id = %(service_object)s
   AND deleted_at IS NULL;

-- versions --
SELECT version, created_at
  FROM definitions
 WHERE service_object = %(service_object)s
 ORDER BY version;

-- customise --
-- Only where nothing has changed since the revision that was read.
UPDATE service_objects
   SET custom_fields = %(custom_fields)s, updated_at = %(now)s, revision = revision + 1
 WHERE id = %(service_object)s
   AND revision = %(revision)s
   AND deleted_at IS NULL
RETURNING revision;

-- replace --
-- Another version in force for the API, a new one unless one is named.
UPDATE service_objects
   SET version = coalesce(%(version)s, newest_version + 1),
       newest_version = greatest(newest_version, coalesce(%(version)s, newest_version + 1)),
       custom_fields = CASE WHEN %(version)s::integer IS NULL THEN %(custom_fields)s::json
                            ELSE custom_fields END,
       public = %(public)s, updated_at = %(now)s, revision = revision + 1
 WHERE id = %(id)s
   AND revision = %(revision)s
   AND deleted_at IS NULL
RETURNING version, component;

-- declare_streams --
-- The version in force has these streams; others stay, with their history.
WITH gone AS (
    UPDATE streams
       SET declared = false
     WHERE service_object = %(id)s
       AND NOT name = ANY(%(names)s::text[])
)
INSERT INTO streams (tenant_id, service_object, name)
SELECT %(tenant)s, %(id)s, unnest(%(names)s::text[])
    ON CONFLICT (service_object, name) DO UPDATE
   SET declared = true;

-- drop_internal_subscriptions --
DELETE FROM subscriptions
 WHERE callback = 'internal'
   AND destination = %(id)s;

-- delete_service_object --
-- For the API it does not exist any more; the pipeline removes what is stored of it.
UPDATE service_objects
   SET deleted_at = %(now)s, revision = revision + 1
 WHERE id = %(service_object)s
   AND revision = coalesce(%(revision)s, revision)
   AND deleted_at IS NULL
RETURNING tenant_id, version, route_partition;

-- stream_to_erase --
SELECT service_objects.tenant_id, version, route_partition
  FROM streams
  JOIN service_objects ON service_objects.id = service_object
 WHERE service_object = %(service_object)s
   AND streams.name = %(stream)s
   AND deleted_at IS NULL;

-- subscribers --
-- Which groups of other Service Objects name these streams, and may read them.
SELECT service_objects.id, service_objects.tenant_id, streams.name
  FROM streams
  JOIN service_objects AS source ON source.id = streams.service_object
  JOIN subscriptions ON subscriptions.stream_id = streams.id AND callback = 'internal'
  JOIN service_objects ON service_objects.id = destination
   AND service_objects.deleted_at IS NULL
 WHERE service_object = %(service_object)s
   AND (source.public OR source.tenant_id = service_objects.tenant_id)
   AND streams.name = ANY(%(streams)s::text[])
   AND destination <> %(service_object)s
 ORDER BY service_objects.sequence;

-- upstream --
-- These Service Objects and all that their groups read, directly or not.
WITH RECURSIVE reached (id) AS (
    SELECT unnest(%(ids)s::text[])
     UNION
    SELECT streams.service_object
      FROM reached
      JOIN subscriptions ON destination = reached.id AND callback = 'internal'
      JOIN streams ON streams.id = stream_id
)
SELECT service_objects.id, tenant_id, sequence, version
  FROM (SELECT id, row_number() OVER () AS place
          FROM (SELECT id FROM reached LIMIT %(most)s) AS nearest) AS near
  JOIN service_objects ON service_objects.id = near.id AND deleted_at IS NULL
 ORDER BY place;

-- downstream --
-- These Service Objects and all whose groups read them, directly or not.
WITH RECURSIVE reached (id) AS (
    SELECT unnest(%(ids)s::text[])
     UNION
    SELECT destination
      FROM reached
      JOIN streams ON streams.service_object = reached.id
      JOIN subscriptions ON stream_id = streams.id AND callback = 'internal'
)
SELECT service_objects.id, tenant_id, sequence, version
  FROM (SELECT id, row_number() OVER () AS place
          FROM (SELECT id FROM reached LIMIT %(most)s) AS nearest) AS near
  JOIN service_objects ON service_objects.id = near.id AND deleted_at IS NULL
 ORDER BY place;

-- limit_waiting --
-- Until the end of the transaction.
SELECT set_config('lock_timeout', %(wait)s, true);

-- lock_changes --
-- One change of the graph at a time, over all API processes: the order of control records.
SELECT pg_advisory_lock(%(key)s);

-- unlock_changes --
SELECT pg_advisory_unlock(%(key)s);

-- service_objects_named --
SELECT service_objects.id, tenant_id, public, component, route_partition,
       ARRAY(SELECT name FROM streams
              WHERE service_object = service_objects.id AND declared) AS streams
  FROM service_objects
 WHERE id = ANY(%(ids)s)
   AND deleted_at IS NULL;

-- members_of_components --
SELECT id, component, route_partition
  FROM service_objects
 WHERE component = ANY(%(components)s)
   AND deleted_at IS NULL;

-- quietest_partition --
-- New components go where the fewest Service Objects are.
SELECT partition
  FROM generate_series(0, %(partitions)s - 1) AS partition
  LEFT JOIN service_objects ON route_partition = partition AND deleted_at IS NULL
 GROUP BY partition
 ORDER BY count(service_objects.id), partition
 LIMIT 1;

-- add_service_object --
INSERT INTO service_objects
       (id, tenant_id, public, created_at, updated_at, version, component,
        route_partition, owner_partition, custom_fields)
VALUES (%(id)s, %(tenant)s, %(public)s, %(now)s, %(now)s, 1, %(component)s,
        %(partition)s, %(partition)s, %(custom_fields)s);

-- add_definition --
INSERT INTO definitions (service_object, version, tenant_id, document, created_at)
VALUES (%(id)s, %(version)s, %(tenant)s, %(document)s, %(now)s);

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

-- subscriptions_of_stream --
SELECT tenant_id, document::text
  FROM subscriptions
 WHERE stream_id = %(stream)s
   AND callback <> 'internal'
 ORDER BY created_at, id;

-- subscription --
SELECT subscriptions.tenant_id, service_objects.tenant_id AS owner, document::text
  FROM subscriptions
  JOIN streams ON streams.id = stream_id
  JOIN service_objects ON service_objects.id = service_object AND deleted_at IS NULL
 WHERE subscriptions.id = %(subscription)s
   AND callback <> 'internal';

-- unsubscribe --
DELETE FROM subscriptions
 WHERE id = %(subscription)s
   AND callback <> 'internal';

-- add_internal_subscriptions --
-- What a document's groups subscribe it to (contract 2.1).
INSERT INTO subscriptions
       (id, tenant_id, stream_id, callback, destination, document, created_at)
SELECT replace(gen_random_uuid()::text, '-', ''), %(tenant)s, streams.id, 'internal', %(id)s,
       json_build_object('customFields', json_build_object('groupId', wanted.group_name)), %(now)s
  FROM unnest(%(groups)s::text[], %(sources)s::text[], %(names)s::text[])
       AS wanted (group_name, source, name)
  JOIN streams ON streams.service_object = wanted.source AND streams.name = wanted.name;
