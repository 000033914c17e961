-- Subscriptions that are delivered to, however long their receiver is away.

CREATE SEQUENCE cursor_changes;

CREATE TABLE cursors (
    subscription_id text PRIMARY KEY REFERENCES subscriptions ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    change bigint NOT NULL DEFAULT nextval('cursor_changes'),
    active boolean NOT NULL DEFAULT true,
    cursor json NOT NULL,
    trouble json
);
COMMENT ON TABLE cursors IS 'how far each durable subscription has been acknowledged';
COMMENT ON COLUMN cursors.change IS 'another number whenever delivery has to look at it again';
COMMENT ON COLUMN cursors.trouble IS 'why its receiver does not take what comes; NULL: it does';
COMMENT ON COLUMN cursors.active IS 'whether it is delivered to; else its cursor stays where it is';

CREATE TABLE dead_deliveries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id text NOT NULL REFERENCES subscriptions ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    delivery_id text NOT NULL,
    service_object text NOT NULL,
    stream text NOT NULL,
    "timestamp" bigint NOT NULL,
    document json NOT NULL,
    reason text NOT NULL,
    died_at bigint NOT NULL,
    redrive boolean NOT NULL DEFAULT false,
    UNIQUE (subscription_id, delivery_id)
);
COMMENT ON TABLE dead_deliveries IS 'updates that a receiver has refused for good';
COMMENT ON COLUMN dead_deliveries.redrive IS 'whether it is to be delivered once more';
