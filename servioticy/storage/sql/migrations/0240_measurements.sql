-- What is measured of the platform's own steps by weaving: the last so many rows.

CREATE TABLE measurements (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    published_at timestamptz NOT NULL DEFAULT now(),
    kind text NOT NULL,
    purpose text NOT NULL,
    sequence text NOT NULL,
    measured json NOT NULL
);
COMMENT ON TABLE measurements IS
    'measurements of woven steps, if the file of aspects says that they are published here';
COMMENT ON COLUMN measurements.id IS 'the order; the oldest rows go while others come';
COMMENT ON COLUMN measurements.sequence IS 'what connects steps, a trace as a rule; empty: none';
COMMENT ON COLUMN measurements.measured IS 'as a line of the files of measurements';
CREATE INDEX measurements_by_sequence ON measurements (sequence) WHERE sequence <> '';

GRANT SELECT, INSERT, DELETE ON measurements
   TO servioticy_api, servioticy_pipeline, servioticy_delivery;
