-- subscribe --
INSERT INTO subscriptions
       (id, tenant_id, stream_id, callback, destination, document, created_at)
VALUES (%(id)s, %(tenant)s, %(stream)s, %(callback)s, %(destination)s, %(document)s, %(now)s)
ON CONFLICT DO NOTHING
RETURNING id;

-- of_stream --
-- Everybody's: who of them may be shown to whom is the caller's to decide.
SELECT subscriptions.tenant_id, streams.tenant_id, document::text
  FROM streams
  JOIN subscriptions ON stream_id = streams.id
 WHERE streams.id = %(stream_id)s
   AND streams.tenant_id = %(tenant)s
 ORDER BY created_at, subscriptions.id;

-- subscription --
-- By its id alone: a request that names it does not say whose it is.
SELECT subscriptions.tenant_id, streams.tenant_id, document::text
  FROM subscriptions
  JOIN streams ON streams.id = stream_id
  JOIN service_objects ON service_objects.id = service_object AND deleted_at IS NULL
 WHERE subscriptions.id = %(id)s;

-- unsubscribe --
DELETE FROM subscriptions
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s;
