-- ask --
-- In the place of the last one, unless that, or too many others, are still to be answered.
INSERT INTO callback_tests (subscription_id, tenant_id, id, document, asked_at)
SELECT subscriptions.id, %(tenant)s, %(id)s, %(document)s, %(now)s
  FROM subscriptions
 WHERE subscriptions.id = %(subscription)s
   AND subscriptions.tenant_id = %(tenant)s
   AND %(most)s > (
       SELECT count(*)
         FROM callback_tests
        WHERE tenant_id = %(tenant)s
          AND status IS NULL
          AND asked_at >= %(forgotten)s)
    ON CONFLICT (subscription_id) DO UPDATE
   SET id = excluded.id, document = excluded.document, asked_at = excluded.asked_at,
       sent_at = NULL, status = NULL, reason = NULL, milliseconds = NULL
 WHERE callback_tests.status IS NOT NULL
    OR callback_tests.asked_at < %(forgotten)s
RETURNING id;

-- last --
SELECT id, document::text, asked_at, sent_at, status, reason, milliseconds
  FROM callback_tests
 WHERE subscription_id = %(subscription)s
   AND tenant_id = %(tenant)s;

-- channels --
-- Between tenants: what is public is everybody's to read, as `readers` says.
-- What the version in force declares of the stream, the first one where it is about several;
-- whose it is, the subscription tells.
SELECT definitions.document #> ARRAY['streams', name, 'channels']
  FROM subscriptions
  JOIN subscribed_streams ON subscription_id = subscriptions.id
  JOIN streams ON streams.id = subscribed_streams.stream_id
  JOIN service_objects ON service_objects.id = streams.service_object
   AND service_objects.tenant_id = streams.tenant_id
  JOIN stream_readers ON stream_readers.stream_id = streams.id
   AND stream_readers.tenant_id = subscriptions.tenant_id
  JOIN definitions ON definitions.service_object = service_objects.id
   AND definitions.version = service_objects.version
   AND definitions.tenant_id = service_objects.tenant_id
 WHERE subscriptions.id = %(subscription)s
   AND subscriptions.tenant_id = %(tenant)s
 ORDER BY streams.id
 LIMIT 1;
