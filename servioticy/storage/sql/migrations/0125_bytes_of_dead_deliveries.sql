-- Dead deliveries are bounded by bytes of a tenant, too, and not by their number of a subscription
-- alone: a subscription may have 10,000 of a megabyte each, and a tenant 100,000 subscriptions.
ALTER TABLE dead_deliveries NO FORCE ROW LEVEL SECURITY;
ALTER TABLE dead_deliveries ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
UPDATE dead_deliveries SET bytes = octet_length(document::text);
ALTER TABLE dead_deliveries FORCE ROW LEVEL SECURITY;
COMMENT ON COLUMN dead_deliveries.bytes IS 'of its document';
CREATE INDEX dead_deliveries_by_tenant ON dead_deliveries (tenant_id, id DESC) INCLUDE (bytes);
