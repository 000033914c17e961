-- claim --
-- Held by the connection, so it is free as soon as its holder is gone.
SELECT CASE
       WHEN EXISTS (
            SELECT
              FROM pg_locks
             WHERE locktype = 'advisory'
               AND pid = pg_backend_pid()
               AND (classid::bigint << 32 | objid::bigint) = %(key)s)
       THEN true
       ELSE pg_try_advisory_lock(%(key)s)
       END;

-- changes --
SELECT subscription_id, change
  FROM cursors
 WHERE active;

-- subscriptions --
-- By their ids alone, whosesoever they are: what the claim's holder delivers to.
SELECT subscriptions.id, subscriptions.tenant_id, callback, document::text, created_at, change,
       cursor::text, service_object, streams.name, streams.tenant_id, streams.id
  FROM cursors
  JOIN subscriptions ON subscriptions.id = subscription_id
  JOIN streams ON streams.id = stream_id
 WHERE subscription_id = ANY(%(ids)s)
   AND active;

-- store --
UPDATE cursors
   SET cursor = moved.cursor::json
  FROM unnest(%(ids)s, %(cursors)s) AS moved (id, cursor)
 WHERE subscription_id = moved.id;

-- begin --
INSERT INTO cursors (subscription_id, tenant_id, cursor)
VALUES (%(id)s, %(tenant)s, %(cursor)s);
