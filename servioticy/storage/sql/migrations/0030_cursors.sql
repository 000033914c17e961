-- Subscriptions that are delivered to, however long their receiver is away.

CREATE SEQUENCE cursor_changes;

CREATE TABLE cursors (
    subscription_id text PRIMARY KEY REFERENCES subscriptions ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    change bigint NOT NULL DEFAULT nextval('cursor_changes'),
    active boolean NOT NULL DEFAULT true,
    cursor json NOT NULL
);
COMMENT ON TABLE cursors IS 'how far each durable subscription has been acknowledged';
COMMENT ON COLUMN cursors.change IS 'another number whenever delivery has to look at it again';
COMMENT ON COLUMN cursors.active IS 'whether it is delivered to; else its cursor stays where it is';
