-- The last test that somebody asked for of each durable subscription, and when it ends.

CREATE TABLE callback_tests (
    subscription_id text PRIMARY KEY REFERENCES subscriptions ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    id text NOT NULL,
    document json NOT NULL,
    asked_at bigint NOT NULL,
    sent_at bigint,
    status integer,
    reason text,
    milliseconds integer
);
COMMENT ON TABLE callback_tests IS 'one attempt, outside of the order, at the press of a button';
COMMENT ON COLUMN callback_tests.document IS 'the update that was made up for it';
COMMENT ON COLUMN callback_tests.sent_at IS 'when delivery took it, which it does once';
COMMENT ON COLUMN callback_tests.status IS 'what the receiver answered; 0: nothing; NULL: not known';
CREATE INDEX callback_tests_waiting ON callback_tests (tenant_id, asked_at) WHERE status IS NULL;
CREATE INDEX callback_tests_to_send ON callback_tests (asked_at) WHERE sent_at IS NULL;

ALTER TABLE cursors ADD COLUMN expires_at bigint;
COMMENT ON COLUMN cursors.expires_at IS 'delivered to until then, in milliseconds since 1970; NULL: for ever';
