-- Streams that somebody has searched, and columns of their updates: made where they are searched,
-- by who searches. The pipeline knows nothing of them until an update comes that is late.

CREATE TABLE searched_streams (
    stream_id bigint PRIMARY KEY,
    tenant_id bigint NOT NULL,
    changes bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN searched_streams.stream_id IS 'stored_as of the stream';
COMMENT ON COLUMN searched_streams.changes IS
    'grows with each block and each late update: what was read before may not be stored after';

CREATE TABLE search_blocks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream_id bigint NOT NULL REFERENCES searched_streams ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    after bigint NOT NULL,
    upto bigint NOT NULL,
    timestamps bytea NOT NULL,
    UNIQUE (stream_id, upto)
);
COMMENT ON TABLE search_blocks IS
    'all updates with timestamps larger than after, up to upto; no two of a stream overlap';
COMMENT ON COLUMN search_blocks.timestamps IS 'of these updates, 8 bytes each';
ALTER TABLE search_blocks ALTER COLUMN timestamps SET STORAGE EXTERNAL;

CREATE TABLE search_columns (
    block_id bigint NOT NULL REFERENCES search_blocks ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    subject text NOT NULL,
    bounds double precision[] NOT NULL,
    codes bytea NOT NULL,
    PRIMARY KEY (block_id, subject)
);
COMMENT ON TABLE search_columns IS 'of the updates of a block what searches of one kind go by';
COMMENT ON COLUMN search_columns.subject IS 'the kind of condition and the channel: number:x';
COMMENT ON COLUMN search_columns.codes IS 'api/search/columns.py';
ALTER TABLE search_columns ALTER COLUMN codes SET STORAGE EXTERNAL;
