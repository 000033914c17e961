-- Of one tenant the same destination on a stream, or on the same streams, once: that another tenant
-- has it, too, is nobody's business.

DROP INDEX subscriptions_pubsub_once;
CREATE UNIQUE INDEX subscriptions_pubsub_once
    ON subscriptions (stream_id, tenant_id, destination) WHERE callback = 'pubsub';

DROP INDEX subscriptions_pubsub_to_many_once;
CREATE UNIQUE INDEX subscriptions_pubsub_to_many_once
    ON subscriptions (service_object, group_name, tenant_id, destination) NULLS NOT DISTINCT
 WHERE callback = 'pubsub' AND service_object IS NOT NULL;
