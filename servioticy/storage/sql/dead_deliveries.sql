-- trouble --
UPDATE cursors
   SET trouble = %(trouble)s,
       active = active AND NOT %(stop)s
 WHERE subscription_id = %(id)s
   AND tenant_id = %(tenant)s;

-- bury --
INSERT INTO dead_deliveries (subscription_id, tenant_id, delivery_id, service_object, stream,
                             "timestamp", document, reason, died_at, bytes)
SELECT subscription_id, tenant_id, %(delivery)s, %(service_object)s, %(stream)s,
       %(timestamp)s, %(document)s, %(reason)s, %(now)s, octet_length(%(document)s::text)
  FROM cursors
 WHERE subscription_id = %(id)s
   AND tenant_id = %(tenant)s
    ON CONFLICT (subscription_id, delivery_id) DO UPDATE
   SET reason = excluded.reason,
       died_at = excluded.died_at,
       redrive = false;

-- forget_oldest --
DELETE FROM dead_deliveries
 WHERE tenant_id = %(tenant)s
   AND id IN (
       SELECT id
         FROM dead_deliveries
        WHERE subscription_id = %(id)s
          AND tenant_id = %(tenant)s
        ORDER BY id DESC
       OFFSET %(most)s);

-- forget_oldest_of_all --
-- Of all subscriptions of a tenant, where their documents together have too many bytes; each
-- counts for what its row takes beside, too.
DELETE FROM dead_deliveries
 WHERE tenant_id = %(tenant)s
   AND id <= (
       SELECT max(id)
         FROM (SELECT id, sum(bytes + %(row)s) OVER (ORDER BY id DESC) AS together
                 FROM dead_deliveries
                WHERE tenant_id = %(tenant)s) AS newest
        WHERE together > %(most)s);

-- to_redrive --
SELECT delivery_id, service_object, stream, "timestamp", document::text
  FROM dead_deliveries
 WHERE subscription_id = %(id)s
   AND tenant_id = %(tenant)s
   AND redrive
 ORDER BY id
 LIMIT %(most)s;

-- revived --
DELETE FROM dead_deliveries
 WHERE subscription_id = %(id)s
   AND tenant_id = %(tenant)s
   AND delivery_id = %(delivery)s;
