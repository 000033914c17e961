-- Durable subscriptions end at a time of their tenant's choice.

ALTER TABLE cursors ADD COLUMN expires_at bigint;
COMMENT ON COLUMN cursors.expires_at IS 'delivered to until then, in milliseconds since 1970; NULL: for ever';
