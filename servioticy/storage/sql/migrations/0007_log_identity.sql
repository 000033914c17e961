-- Progress is a place in one certain log. Which log that is stands beside it, and what was
-- lost of it and accepted as lost.

CREATE TABLE log_identity (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    topic text NOT NULL,
    topic_id text NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN log_identity.topic_id IS 'given by Kafka: a topic made anew has another one';

CREATE TABLE log_losses (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    log_partition integer NOT NULL,
    topic_id text NOT NULL,
    stored_offset bigint NOT NULL,
    log_first bigint NOT NULL,
    log_end bigint NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE log_losses IS
    'where stored progress and the log did not belong together, and an operator accepted it';
