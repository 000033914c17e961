-- subscribe --
-- Unless it is there already, or the tenant has as many to this source as it may have; to groups
-- they count together.
WITH counted AS (
    SELECT count(*) >= %(most)s AS is_full
      FROM (SELECT
              FROM subscriptions
             WHERE tenant_id = %(tenant)s
               AND (stream_id = %(stream)s::bigint
                    OR service_object = %(service_object)s::text AND group_name IS NULL
                       AND %(group)s::text IS NULL
                    OR group_name IS NOT NULL AND %(group)s::text IS NOT NULL)
             LIMIT %(most)s) AS own
), added AS (
    INSERT INTO subscriptions
           (id, tenant_id, stream_id, service_object, group_name, callback, destination, document,
            created_at)
    SELECT %(id)s, %(tenant)s, %(stream)s::bigint, %(service_object)s::text, %(group)s::text,
           %(callback)s, %(destination)s, %(document)s, %(now)s
      FROM counted
     WHERE NOT is_full
        ON CONFLICT DO NOTHING
    RETURNING id
), begun AS (
    INSERT INTO cursors (subscription_id, tenant_id, cursor, expires_at)
    SELECT id, %(tenant)s, %(cursor)s, %(expires_at)s
      FROM added
     WHERE %(cursor)s IS NOT NULL
)
SELECT is_full, EXISTS (SELECT FROM added)
  FROM counted;

-- of_source --
-- Between tenants: each of a Service Object's subscriptions belongs to another, perhaps.
-- The next ones to all of a Service Object, or to a group, as `of_stream`.
SELECT subscriptions.created_at, subscriptions.id, subscriptions.tenant_id,
       service_objects.tenant_id, subscriptions.document::text, active, trouble::text
  FROM service_objects
  JOIN subscriptions ON subscriptions.service_object = service_objects.id
  LEFT JOIN cursors ON subscription_id = subscriptions.id
   AND cursors.tenant_id = subscriptions.tenant_id
 WHERE service_objects.id = %(service_object)s
   AND service_objects.tenant_id = %(tenant)s
   AND group_name IS NOT DISTINCT FROM %(group)s
   AND subscriptions.tenant_id = coalesce(%(only)s, subscriptions.tenant_id)
   AND (subscriptions.created_at, subscriptions.id) > (%(created_at)s, %(id)s)
 ORDER BY subscriptions.created_at, subscriptions.id
 LIMIT %(rows)s;

-- of_stream --
-- Between tenants: each of a stream's subscriptions belongs to another, perhaps.
-- The next ones, in the order of their making: those of one tenant, or of all.
SELECT subscriptions.created_at, subscriptions.id, subscriptions.tenant_id, streams.tenant_id,
       document::text, active, trouble::text
  FROM streams
  JOIN subscriptions ON stream_id = streams.id
  LEFT JOIN cursors ON subscription_id = subscriptions.id
   AND cursors.tenant_id = subscriptions.tenant_id
 WHERE streams.id = %(stream_id)s
   AND streams.tenant_id = %(tenant)s
   AND subscriptions.tenant_id = coalesce(%(only)s, subscriptions.tenant_id)
   AND (subscriptions.created_at, subscriptions.id) > (%(created_at)s, %(id)s)
 ORDER BY subscriptions.created_at, subscriptions.id
 LIMIT %(rows)s;

-- of_tenant --
-- The next ones of a tenant, whatever they are to, by their ids.
SELECT subscriptions.id, subscriptions.document::text, active, trouble::text
  FROM subscriptions
  LEFT JOIN cursors ON subscription_id = subscriptions.id
   AND cursors.tenant_id = subscriptions.tenant_id
 WHERE subscriptions.tenant_id = %(tenant)s
   AND subscriptions.id > %(after)s
 ORDER BY subscriptions.id
 LIMIT %(rows)s;

-- subscription --
-- Between tenants: before it is known who asks there is no tenant to name.
-- By its id alone: a request that names it does not say whose it is.
SELECT subscriptions.tenant_id, service_objects.tenant_id, document::text, active, trouble::text
  FROM subscriptions
  LEFT JOIN cursors ON subscription_id = subscriptions.id
   AND cursors.tenant_id = subscriptions.tenant_id
  LEFT JOIN streams ON streams.id = stream_id
  JOIN service_objects
    ON service_objects.id = coalesce(subscriptions.service_object, streams.service_object)
   AND deleted_at IS NULL
 WHERE subscriptions.id = %(id)s;

-- cursor --
SELECT cursor::text
  FROM cursors
 WHERE subscription_id = %(id)s
   AND tenant_id = %(tenant)s;

-- unsubscribe --
DELETE FROM subscriptions
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s;

-- change_document --
-- Delivery hears of it by the number.
WITH changed AS (
    UPDATE subscriptions
       SET document = %(document)s,
           destination = %(destination)s
     WHERE id = %(id)s
       AND tenant_id = %(tenant)s
       AND document::text = %(before)s
    RETURNING id
), told AS (
    UPDATE cursors
       SET change = nextval('cursor_changes'),
           expires_at = %(expires_at)s
      FROM changed
     WHERE subscription_id = changed.id
       AND cursors.tenant_id = %(tenant)s
)
SELECT id
  FROM changed;

-- resume --
UPDATE cursors
   SET active = true,
       trouble = NULL,
       change = nextval('cursor_changes')
 WHERE subscription_id = %(id)s
   AND tenant_id = %(tenant)s
RETURNING subscription_id;

-- dead_deliveries --
SELECT id, delivery_id, service_object, stream, document::text, reason, died_at, redrive
  FROM dead_deliveries
 WHERE subscription_id = %(id)s
   AND tenant_id = %(tenant)s
   AND id > %(after)s
 ORDER BY id
 LIMIT %(rows)s;

-- redrive --
-- All that are dead now; delivery hears of it by the number.
WITH revived AS (
    UPDATE dead_deliveries
       SET redrive = true
     WHERE subscription_id = %(id)s
       AND tenant_id = %(tenant)s
    RETURNING 1
), told AS (
    UPDATE cursors
       SET change = nextval('cursor_changes')
     WHERE subscription_id = %(id)s
       AND tenant_id = %(tenant)s
)
SELECT count(*)
  FROM revived;
