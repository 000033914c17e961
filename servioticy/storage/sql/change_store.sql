-- limit_waiting --
-- Until the end of the transaction.
SELECT set_config('lock_timeout', %(wait)s, true);

-- lock_changes --
-- One change of the graph at a time, over all API processes: the order of control records.
SELECT pg_advisory_lock(%(key)s);

-- unlock_changes --
SELECT pg_advisory_unlock(%(key)s);

-- components_of --
-- Of those of them that are the tenant's: what is read of others joins nothing.
SELECT component
  FROM service_objects
 WHERE id = ANY(%(ids)s::text[])
   AND tenant_id = %(tenant)s
   AND deleted_at IS NULL;

-- members_of_components --
SELECT id, component, route_partition
  FROM service_objects
 WHERE component = ANY(%(components)s::text[])
   AND tenant_id = %(tenant)s
   AND deleted_at IS NULL
 ORDER BY sequence;

-- beside --
-- All of its component: where each is routed, whether what was changed of it last is in force, and
-- whether it is there for the API.
SELECT beside.id, beside.component, beside.route_partition,
       beside.deleted_at IS NULL AND beside.active_version IS NOT DISTINCT FROM beside.version
       AND beside.active_change >= coalesce(named_by, 0), beside.deleted_at IS NULL
  FROM service_objects AS own
  JOIN service_objects AS beside ON beside.component = own.component
   AND beside.tenant_id = own.tenant_id
  LEFT JOIN definitions ON definitions.service_object = beside.id
   AND definitions.version = beside.version
   AND definitions.tenant_id = beside.tenant_id
 WHERE own.id = %(id)s
   AND own.tenant_id = %(tenant)s
   AND own.deleted_at IS NULL
 ORDER BY beside.sequence;

-- edges_within --
-- Who reads whom within a component.
SELECT DISTINCT reading.id, source.id
  FROM service_objects AS reading
  JOIN graph_edges ON graph_edges.reader = reading.id
   AND graph_edges.tenant_id = reading.tenant_id
  JOIN streams ON streams.id = stream_id
   AND streams.tenant_id = reading.tenant_id
  JOIN service_objects AS source ON source.id = streams.service_object
   AND source.tenant_id = reading.tenant_id
   AND source.component = reading.component
 WHERE reading.component = %(component)s
   AND reading.tenant_id = %(tenant)s
   AND reading.id <> source.id;

-- name_component --
UPDATE service_objects
   SET component = %(component)s
 WHERE id = ANY(%(ids)s::text[])
   AND tenant_id = %(tenant)s;

-- load --
-- Between tenants: partitions are everybody's.
-- How many Service Objects there are in each partition that has any.
SELECT route_partition, count(*)
  FROM service_objects
 WHERE deleted_at IS NULL
 GROUP BY route_partition;

-- add_service_object --
INSERT INTO service_objects
       (id, tenant_id, public, created_at, updated_at, version, component,
        route_partition, owner_partition, custom_fields)
VALUES (%(id)s, %(tenant)s, %(public)s, %(now)s, %(now)s, 1, %(component)s,
        %(partition)s, %(partition)s, %(custom_fields)s);

-- add_definition --
INSERT INTO definitions (service_object, version, tenant_id, document, created_at, bytes,
                         operator_owners)
VALUES (%(id)s, %(version)s, %(tenant)s, %(document)s, %(now)s,
        octet_length(%(document)s::text), %(owners)s::json);

-- name_version --
-- It stays at least until the log has passed this change.
UPDATE definitions
   SET named_by = %(change)s
 WHERE service_object = %(id)s
   AND tenant_id = %(tenant)s
   AND version = %(version)s;

-- next_version --
-- Of a version that is only saved: the one in force, and the revision, stay.
UPDATE service_objects
   SET newest_version = newest_version + 1
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
   AND deleted_at IS NULL
RETURNING newest_version;

-- save_definition --
-- The log has no change that names it, until it is put in force.
INSERT INTO definitions (service_object, version, tenant_id, document, created_at, bytes,
                         operator_owners, named_by)
VALUES (%(id)s, %(version)s, %(tenant)s, %(document)s, %(now)s,
        octet_length(%(document)s::text), %(owners)s::json, -1);

-- forget_versions --
-- All but the newest ones, one in force, and those that the log has still to name; those that the
-- follower of dynamic groups has made it forgets itself.
DELETE FROM definitions
 USING service_objects
 WHERE service_objects.id = %(id)s
   AND service_objects.tenant_id = %(tenant)s
   AND definitions.service_object = service_objects.id
   AND definitions.tenant_id = service_objects.tenant_id
   AND definitions.version = ANY(ARRAY(
       SELECT version
         FROM definitions
        WHERE service_object = %(id)s
          AND tenant_id = %(tenant)s
          AND NOT automatic
        ORDER BY version DESC
       OFFSET %(keep)s
        LIMIT 100))
   AND definitions.version <> service_objects.version
   AND named_by < active_change;

-- follow_template --
INSERT INTO template_objects (service_object, tenant_id, template, version, parameters)
VALUES (%(id)s, %(tenant)s, %(template)s, %(version)s, %(parameters)s)
    ON CONFLICT (service_object) DO UPDATE
   SET version = excluded.version, parameters = excluded.parameters;

-- leave_template --
DELETE FROM template_objects
 WHERE service_object = %(id)s
   AND tenant_id = %(tenant)s;

-- add_object_token --
INSERT INTO tokens (digest, tenant_id, service_object)
VALUES (%(digest)s, %(tenant)s, %(id)s);

-- replace --
-- Another version in force for the API, a new one unless one is named.
UPDATE service_objects
   SET version = coalesce(%(version)s, newest_version + 1),
       newest_version = greatest(newest_version, coalesce(%(version)s, newest_version + 1)),
       custom_fields = CASE WHEN %(version)s::integer IS NULL THEN %(custom_fields)s::json
                            ELSE custom_fields END,
       public = %(public)s, updated_at = %(now)s, revision = revision + 1
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
   AND revision = %(revision)s
   AND deleted_at IS NULL
RETURNING version, component, route_partition;

-- list --
-- What was derived beforehand: the trigger finds it done.
INSERT INTO listings (service_object, tenant_id, name, fields, channel_types, latitude, longitude,
                      revision)
VALUES (%(id)s, %(tenant)s, %(name)s, coalesce(%(fields)s::text[], '{}'),
        %(channel_types)s::text[], %(latitude)s, %(longitude)s, %(revision)s)
    ON CONFLICT (service_object) DO UPDATE
   SET name = excluded.name,
       channel_types = excluded.channel_types,
       revision = excluded.revision,
       fields = CASE WHEN %(fields)s::text[] IS NULL THEN listings.fields
                     ELSE excluded.fields END,
       latitude = CASE WHEN %(fields)s::text[] IS NULL THEN listings.latitude
                       ELSE excluded.latitude END,
       longitude = CASE WHEN %(fields)s::text[] IS NULL THEN listings.longitude
                        ELSE excluded.longitude END;

-- declare_streams --
-- The version in force has these streams, kept for so long; others stay, with their history.
WITH gone AS (
    UPDATE streams
       SET declared = false
     WHERE service_object = %(id)s
       AND tenant_id = %(tenant)s
       AND declared
       AND NOT name = ANY(%(names)s::text[])
)
INSERT INTO streams (tenant_id, service_object, name, kept_seconds)
SELECT %(tenant)s, %(id)s, d.name, d.kept_seconds
  FROM unnest(%(names)s::text[], %(kept_seconds)s::bigint[]) AS d (name, kept_seconds)
    ON CONFLICT (service_object, name) DO UPDATE
   SET declared = true, kept_seconds = excluded.kept_seconds
 WHERE NOT streams.declared
    OR streams.kept_seconds IS DISTINCT FROM excluded.kept_seconds;

-- add_acting_streams --
-- What they emit is looked at by delivery from now on; by which version, an update says.
INSERT INTO acting_streams (stream_id, tenant_id, created_at)
SELECT streams.id, streams.tenant_id, %(now)s
  FROM streams
 WHERE service_object = %(id)s
   AND tenant_id = %(tenant)s
   AND name = ANY(%(names)s::text[])
    ON CONFLICT DO NOTHING;

-- name_callback --
-- A secret that was made for it once stays.
INSERT INTO actuation_callbacks (service_object, tenant_id, callback, secrets)
VALUES (%(id)s, %(tenant)s, %(callback)s, %(secrets)s)
    ON CONFLICT (service_object) DO UPDATE
   SET callback = excluded.callback;

-- drop_callback --
DELETE FROM actuation_callbacks
 WHERE service_object = %(id)s
   AND tenant_id = %(tenant)s;

-- drop_edges --
DELETE FROM graph_edges
 WHERE reader = %(id)s
   AND tenant_id = %(tenant)s;

-- add_edges --
-- Between tenants: the edges are one's own, the streams perhaps public ones of others.
-- What a document's groups read: streams of its tenant, and public ones of others.
INSERT INTO graph_edges (tenant_id, reader, group_name, stream_id)
SELECT %(tenant)s, %(id)s, wanted.group_name, streams.id
  FROM unnest(%(groups)s::text[], %(sources)s::text[], %(streams)s::text[])
       AS wanted (group_name, source, name)
  JOIN streams ON streams.service_object = wanted.source AND streams.name = wanted.name
    ON CONFLICT DO NOTHING;

-- join_components --
UPDATE service_objects
   SET component = %(component)s
 WHERE component = ANY(%(components)s::text[])
   AND tenant_id = %(tenant)s
   AND component <> %(component)s;

-- delete_service_object --
-- For the API it does not exist any more; the pipeline removes what is stored of it.
UPDATE service_objects
   SET deleted_at = %(now)s, custom_fields = NULL, revision = revision + 1
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
   AND revision = coalesce(%(revision)s, revision)
   AND deleted_at IS NULL
RETURNING version, route_partition;

-- drop_object_tokens --
DELETE FROM tokens
 WHERE service_object = %(id)s
   AND tenant_id = %(tenant)s;

-- drop_actuations --
-- At once: there are no more of them than are kept of one Service Object.
DELETE FROM actuations
 WHERE service_object = %(id)s
   AND tenant_id = %(tenant)s;

-- stream_to_erase --
SELECT version, route_partition
  FROM streams
  JOIN service_objects ON service_objects.id = service_object
   AND service_objects.tenant_id = streams.tenant_id
 WHERE service_object = %(id)s
   AND streams.tenant_id = %(tenant)s
   AND streams.name = %(stream)s
   AND deleted_at IS NULL;

-- fill_in --
-- A backfill that is computed is to take its place; none where it was cancelled, or the Service
-- Object is gone.
UPDATE jobs
   SET state = 'swapping'
  FROM service_objects
 WHERE jobs.id = %(job)s
   AND jobs.tenant_id = %(tenant)s
   AND state = 'running'
   AND service_objects.id = %(id)s
   AND service_objects.tenant_id = %(tenant)s
   AND deleted_at IS NULL
RETURNING service_objects.version, route_partition;

-- grant --
-- Of a Service Object, or of a stream, that is there; no more of them than there may be.
WITH own AS (
    SELECT id, tenant_id, version, route_partition
      FROM service_objects
     WHERE id = %(id)s
       AND tenant_id = %(tenant)s
       AND deleted_at IS NULL
       AND (%(stream)s::text IS NULL OR EXISTS (
               SELECT FROM streams
                WHERE service_object = %(id)s
                  AND streams.tenant_id = %(tenant)s
                  AND streams.name = %(stream)s))
       AND %(most)s > (
               SELECT count(*)
                 FROM grants
                WHERE service_object = %(id)s
                  AND grants.tenant_id = %(tenant)s)
), made AS (
    INSERT INTO grants (id, tenant_id, service_object, stream, grantee, derived_only,
                        created_at, expires_at)
    SELECT %(grant)s, tenant_id, id, %(stream)s, %(grantee)s, %(derived_only)s, %(now)s,
           %(expires_at)s
      FROM own
)
SELECT version, route_partition
  FROM own;

-- revoke --
-- For the API it is gone; the pipeline removes the row where the log says so.
UPDATE grants
   SET revoked_at = %(now)s
  FROM service_objects
 WHERE grants.id = %(grant)s
   AND grants.tenant_id = %(tenant)s
   AND revoked_at IS NULL
   AND service_objects.id = service_object
   AND service_objects.tenant_id = grants.tenant_id
   AND deleted_at IS NULL
RETURNING service_object, version, route_partition;

-- expired --
-- Between tenants: what has expired ends, whosesoever it is.
-- Those of deleted Service Objects go with them.
SELECT grants.tenant_id, grants.id
  FROM grants
  JOIN service_objects ON service_objects.id = service_object
   AND service_objects.tenant_id = grants.tenant_id
   AND deleted_at IS NULL
 WHERE expires_at <= %(now)s
   AND revoked_at IS NULL
 ORDER BY expires_at
 LIMIT %(most)s;

-- overdue --
-- Between tenants: whatever the log has lost, whosesoever it was.
-- Ends that are told, and not carried out since: the oldest of each tenant, then the next ones.
-- What is carried out has no row any more, or no change after it.
SELECT tenant_id, service_object, version, greatest(route_partition, ~route_partition), revoked
  FROM (SELECT grants.tenant_id, service_object, version, route_partition,
               grants.id AS revoked, revoked_at AS told_at
          FROM grants
          JOIN service_objects ON service_objects.id = service_object
           AND service_objects.tenant_id = grants.tenant_id
           AND deleted_at IS NULL
         WHERE revoked_at <= %(before)s
         UNION ALL
        SELECT tenant_id, id, version, route_partition, NULL, deleted_at
          FROM service_objects
         WHERE deleted_at <= %(before)s
           AND active_change < 9223372036854775807) AS told
 ORDER BY row_number() OVER (PARTITION BY tenant_id ORDER BY told_at), told_at
 LIMIT %(most)s;

-- add_pending_change --
INSERT INTO pending_changes (tenant_id, change)
VALUES (%(tenant)s, %(change)s)
RETURNING id;

-- pending_changes --
-- Between tenants: changes are made one after the other over the whole platform.
SELECT id, change::text
  FROM pending_changes
 ORDER BY id;

-- leave --
-- Between tenants: changes are made one after the other over the whole platform.
-- From now on what comes for them waits until they are routed anew (`placement.py`).
UPDATE service_objects
   SET route_partition = ~route_partition
 WHERE id = ANY(%(ids)s::text[])
   AND route_partition >= 0;

-- route --
-- Between tenants: changes are made one after the other over the whole platform.
-- From now on the API appends their updates there; the control records are in the log.
UPDATE service_objects
   SET route_partition = %(partition)s
 WHERE id = ANY(%(ids)s::text[]);

-- drop_pending_changes --
-- Between tenants: changes are made one after the other over the whole platform.
DELETE FROM pending_changes
 WHERE id = ANY(%(changes)s::bigint[]);
