-- Subscriptions to topics are delivered to, too: those there are begin with what the log of
-- emitted updates still has from after their making.

INSERT INTO cursors (subscription_id, tenant_id, cursor)
SELECT id, tenant_id, '{"offsets":{},"history":[],"since":{}}'
  FROM subscriptions
 WHERE callback IN ('pubsub', 'service')
    ON CONFLICT DO NOTHING;
