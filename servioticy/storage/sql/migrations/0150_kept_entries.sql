-- What composites that an operator computes keep under keys from one computation to the next: a
-- batch writes those entries that are other ones than before. An entry may be due at a time of the
-- log, at which whoever computes the stream has it told (TickRecord).

CREATE TABLE kept_entries (
    stream_id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    log_partition integer NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    due bigint,
    PRIMARY KEY (stream_id, key)
);
COMMENT ON TABLE kept_entries IS
    'what operators keep of composite streams, and when they are to be woken';

COMMENT ON COLUMN kept_entries.log_partition IS 'where the stream is computed, as far as it is due';

CREATE INDEX kept_entries_due ON kept_entries (log_partition, tenant_id, due)
 WHERE due IS NOT NULL;

SELECT force_row_level_security('kept_entries');

SELECT for_all_tenants('servioticy_pipeline', 'SELECT', '{kept_entries}');
SELECT for_all_tenants('servioticy_pipeline', 'INSERT', '{kept_entries}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE', '{kept_entries}');
SELECT for_all_tenants('servioticy_pipeline', 'DELETE', '{kept_entries}');
GRANT SELECT, INSERT, UPDATE, DELETE ON kept_entries TO servioticy_pipeline;
