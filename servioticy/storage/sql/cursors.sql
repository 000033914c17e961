-- come --
-- This connection is one of those that share the slots, for as long as it lives, and is known by
-- this fence.
SELECT set_config('servioticy.fence', %(fence)s, false),
       set_config('application_name', %(name)s, false),
       pg_advisory_lock_shared(%(processes)s, 0);

-- fence --
-- What this connection is known by; nothing where it has not come.
SELECT coalesce(current_setting('servioticy.fence', true), '');

-- held --
-- Who has what: the slots, and whether this connection has them; -1 is that one shares them. And
-- where whoever it is is reached, as the connection is named.
SELECT CASE WHEN classid::bigint = %(processes)s THEN -1 ELSE objid::bigint END,
       pid = pg_backend_pid(), coalesce(application_name, '')
  FROM pg_locks
  LEFT JOIN pg_stat_activity USING (pid)
 WHERE locktype = 'advisory'
   AND objsubid = 2
   AND classid::bigint IN (%(processes)s, %(slots)s)
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND granted;

-- take --
-- Held by the connection, so it is free as soon as its holder is gone.
SELECT slot
  FROM unnest(%(wanted)s::integer[]) AS wanted (slot)
 WHERE pg_try_advisory_lock(%(slots)s, slot);

-- release --
SELECT pg_advisory_unlock(%(slots)s, slot)
  FROM unnest(%(released)s::integer[]) AS released (slot);

-- changes --
-- Of those whose source their tenants may read: what was public may be private now, or deleted,
-- and a grant may have ended. Of one stream that may be read for itself; of more the whole.
-- Where a grant has expired and nobody has revoked it yet, what is about its and other streams
-- is about others, too; that is counted apart from the changes, which never become less.
SELECT subscription_id, change, changes + CASE WHEN stream_id IS NULL THEN (
           WITH ended AS MATERIALIZED (
               SELECT service_object
                 FROM grants
                WHERE grants.expires_at <= extract(epoch FROM now()) * 1000
                  AND revoked_at IS NULL
           )
           SELECT count(*) << 40
             FROM ended
             JOIN streams AS its ON its.service_object = ended.service_object
             JOIN subscribed_streams ON subscribed_streams.stream_id = its.id
              AND subscribed_streams.subscription_id = subscriptions.id) ELSE 0 END,
       cursors.tenant_id
  FROM cursors
  JOIN subscriptions ON subscriptions.id = subscription_id
  LEFT JOIN streams ON streams.id = stream_id
  JOIN service_objects
    ON service_objects.id = coalesce(subscriptions.service_object, streams.service_object)
   AND deleted_at IS NULL
 WHERE active
   AND (expires_at IS NULL OR expires_at > extract(epoch FROM now()) * 1000)
   AND CASE WHEN stream_id IS NULL
            THEN EXISTS (SELECT FROM readers
                          WHERE readers.service_object = service_objects.id
                            AND readers.tenant_id = cursors.tenant_id)
            ELSE EXISTS (SELECT FROM stream_readers
                          WHERE stream_readers.stream_id = subscriptions.stream_id
                            AND stream_readers.tenant_id = cursors.tenant_id) END
 UNION ALL
SELECT 'actions-' || stream_id, 0, 0, tenant_id
  FROM acting_streams;

-- subscriptions --
-- By their ids alone, whosesoever they are: what the claim's holder delivers to.
SELECT subscriptions.id, subscriptions.tenant_id, callback, document::text, created_at,
       cursor::text, (trouble->>'since_ms')::bigint,
       coalesce(subscriptions.service_object, streams.service_object), streams.name, group_name
  FROM cursors
  JOIN subscriptions ON subscriptions.id = subscription_id
  LEFT JOIN streams ON streams.id = stream_id
 WHERE subscription_id = ANY(%(ids)s)
   AND active;

-- streams --
-- What these are about, of what their tenants may read, at one moment with the newest stream of
-- all: what is newer comes to be later.
SELECT wanted.id, (SELECT coalesce(max(id), 0) FROM streams), about.service_object, about.name,
       about.tenant_id, about.id
  FROM unnest(%(ids)s::text[]) AS wanted (id)
  LEFT JOIN (
       SELECT subscription_id, streams.service_object, streams.name, streams.tenant_id, streams.id
         FROM subscribed_streams
         JOIN streams ON streams.id = stream_id
         JOIN service_objects ON service_objects.id = streams.service_object
          AND deleted_at IS NULL
         JOIN stream_readers ON stream_readers.stream_id = streams.id
          AND stream_readers.tenant_id = subscribed_streams.tenant_id
        WHERE subscription_id = ANY(%(ids)s::text[])) AS about
    ON subscription_id = wanted.id;

-- acting --
-- Composite streams that ask for actions, as subscriptions of their own tenants.
SELECT 'actions-' || streams.id, streams.tenant_id, 'actions', '{}', created_at, cursor::text,
       NULL::bigint, service_object, streams.name, NULL, streams.tenant_id, streams.id
  FROM acting_streams
  JOIN streams ON streams.id = stream_id
   AND streams.tenant_id = acting_streams.tenant_id
 WHERE stream_id = ANY(%(streams)s::bigint[]);

-- store_acting --
-- Only by the connection that has claimed, where one has.
WITH moved AS (
    UPDATE acting_streams
       SET cursor = moved.cursor::json
      FROM unnest(%(streams)s::bigint[], %(cursors)s::text[]) AS moved (id, cursor)
     WHERE stream_id = moved.id
       AND coalesce(current_setting('servioticy.fence', true), '') = %(fence)s
)
SELECT coalesce(current_setting('servioticy.fence', true), '') = %(fence)s;

-- store --
-- Only by the connection that has claimed, where one has.
WITH moved AS (
    UPDATE cursors
       SET cursor = moved.cursor::json
      FROM unnest(%(ids)s, %(cursors)s) AS moved (id, cursor)
     WHERE subscription_id = moved.id
       AND coalesce(current_setting('servioticy.fence', true), '') = %(fence)s
)
SELECT coalesce(current_setting('servioticy.fence', true), '') = %(fence)s;

-- every --
-- All durable subscriptions, from an id on.
SELECT subscription_id, created_at, cursor::text
  FROM cursors
  JOIN subscriptions ON subscriptions.id = subscription_id
 WHERE subscription_id > %(after)s
 ORDER BY subscription_id
 LIMIT %(most)s;

-- every_acting --
-- The same of composite streams that ask for actions.
SELECT stream_id, created_at, cursor::text
  FROM acting_streams
 WHERE stream_id > %(after)s
 ORDER BY stream_id
 LIMIT %(most)s;
