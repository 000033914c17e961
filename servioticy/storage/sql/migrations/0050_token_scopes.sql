-- Tokens that may do less than their tenant, and not for ever.

ALTER TABLE tokens
    ADD COLUMN id text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
    ADD COLUMN name text NOT NULL DEFAULT '',
    ADD COLUMN stream text,
    ADD COLUMN rights text[],
    ADD COLUMN expires_at timestamptz,
    ADD CONSTRAINT tokens_of_a_stream CHECK (stream IS NULL OR service_object IS NOT NULL);
COMMENT ON COLUMN tokens.stream IS
    'the only stream of its Service Object that its holder may act on; null: all of them';
COMMENT ON COLUMN tokens.rights IS 'what its holder may do; null: whatever such a token may';
CREATE UNIQUE INDEX tokens_by_id ON tokens (id);
CREATE INDEX tokens_by_tenant ON tokens (tenant_id, id);
