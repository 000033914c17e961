-- What each composite stream's code has used. Noted beside the batches, not in them: time is
-- nothing that a repetition would repeat.

CREATE TABLE usage (
    stream_id     bigint PRIMARY KEY,
    tenant_id     bigint NOT NULL REFERENCES tenants (id),
    processor_us  bigint NOT NULL
);
