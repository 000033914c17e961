-- A stream and timestamp met twice is stored as it was last, but subscribers get both. What the
-- later one of a batch displaces is kept here until its emission is acknowledged.

CREATE TABLE superseded (
    log_partition integer NOT NULL,
    log_offset bigint NOT NULL,
    log_position integer NOT NULL,
    stream_id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    "timestamp" bigint NOT NULL,
    document json NOT NULL,
    version integer NOT NULL,
    PRIMARY KEY (log_partition, log_offset, log_position)
);
