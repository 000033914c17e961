-- take --
-- Each is taken once, whatever becomes of who takes it.
UPDATE callback_tests
   SET sent_at = %(now)s
  FROM subscriptions
 CROSS JOIN LATERAL (
       SELECT streams.service_object, streams.name
         FROM subscribed_streams
         JOIN streams ON streams.id = subscribed_streams.stream_id
         JOIN stream_readers ON stream_readers.stream_id = streams.id
          AND stream_readers.tenant_id = subscriptions.tenant_id
        WHERE subscribed_streams.subscription_id = subscriptions.id
        ORDER BY streams.id
        LIMIT 1) AS first
 WHERE subscriptions.id = callback_tests.subscription_id
   AND subscription_id = ANY(ARRAY(
       SELECT subscription_id
         FROM callback_tests
        WHERE sent_at IS NULL
          AND asked_at >= %(forgotten)s
        ORDER BY asked_at
        LIMIT %(most)s
          FOR UPDATE SKIP LOCKED))
RETURNING callback_tests.id, callback_tests.tenant_id, subscription_id, subscriptions.document::text,
          first.service_object, first.name, callback_tests.asked_at,
          callback_tests.document::text;

-- answered --
UPDATE callback_tests
   SET status = %(status)s, reason = %(reason)s, milliseconds = %(milliseconds)s
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s;
