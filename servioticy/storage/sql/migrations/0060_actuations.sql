-- Actuations are delivered, until they are done or their time is over; composites ask for some.
-- The defaults are for an API of the release before, while both run.

ALTER TABLE actuations
    ADD COLUMN state text NOT NULL DEFAULT 'queued'
        CHECK (state IN ('queued', 'sent', 'delivered', 'done', 'failed')),
    ADD COLUMN times jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN expires_at bigint NOT NULL
        DEFAULT (extract(epoch FROM now()) * 1000)::bigint + 86400000,
    ADD COLUMN description text NOT NULL DEFAULT '{}',
    ADD COLUMN made_in xid8 NOT NULL DEFAULT pg_current_xact_id();
-- Those that are there were promised to be kept for a device that asks: for a day they still are.
UPDATE actuations
   SET times = jsonb_build_object('queued', created_at),
       expires_at = created_at + 86400000,
       description = jsonb_build_object('name', name);
COMMENT ON COLUMN actuations.state IS
    'how far it has come; once expires_at is over, what is not done or failed is expired';
COMMENT ON COLUMN actuations.times IS 'when it came to which state, in milliseconds since 1970';
COMMENT ON COLUMN actuations.description IS 'the action, as the document then in force had it';
COMMENT ON COLUMN actuations.made_in IS
    'its transaction: delivery asks for those that it cannot have seen yet';
CREATE INDEX actuations_waiting ON actuations (service_object, sequence)
    WHERE state IN ('queued', 'sent');
CREATE INDEX actuations_waiting_of_tenant ON actuations (tenant_id, expires_at)
    WHERE state IN ('queued', 'sent');
CREATE INDEX actuations_made_in ON actuations (made_in) WHERE state = 'queued';

CREATE TABLE acting_streams (
    stream_id bigint PRIMARY KEY REFERENCES streams ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    created_at bigint NOT NULL,
    cursor json NOT NULL DEFAULT '{"offsets":{},"history":[],"since":{}}'
);
COMMENT ON TABLE acting_streams IS
    'composite streams of which a version asks for actions when it emits';
COMMENT ON COLUMN acting_streams.cursor IS 'as that of a durable subscription: cursors';

CREATE TABLE actuation_callbacks (
    service_object text PRIMARY KEY REFERENCES service_objects ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    callback json NOT NULL,
    secrets json NOT NULL
);
COMMENT ON TABLE actuation_callbacks IS
    'whom to call with actuations, as the document in force of the Service Object says';
COMMENT ON COLUMN actuation_callbacks.secrets IS 'as those of a subscription, the newest first';
