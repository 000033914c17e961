-- Tokens for devices: each may act on one Service Object only.

ALTER TABLE tokens ADD COLUMN service_object text REFERENCES service_objects;
COMMENT ON COLUMN tokens.service_object IS
    'the only Service Object that its holder may act on; null: all of the tenant''s';
CREATE INDEX tokens_by_service_object ON tokens (service_object)
 WHERE service_object IS NOT NULL;
