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

-- One after the other in the index, however many entries each of them has.
CREATE FUNCTION tenants_with_times(of_partition integer) RETURNS SETOF bigint
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE waiting (tenant_id) AS (
        (SELECT tenant_id
           FROM kept_entries
          WHERE log_partition = of_partition
            AND due IS NOT NULL
          ORDER BY tenant_id
          LIMIT 1)
         UNION ALL
        SELECT (SELECT kept_entries.tenant_id
                  FROM kept_entries
                 WHERE log_partition = of_partition
                   AND due IS NOT NULL
                   AND kept_entries.tenant_id > waiting.tenant_id
                 ORDER BY kept_entries.tenant_id
                 LIMIT 1)
          FROM waiting
         WHERE waiting.tenant_id IS NOT NULL
    )
    SELECT tenant_id
      FROM waiting
     WHERE tenant_id IS NOT NULL
$$;
COMMENT ON FUNCTION tenants_with_times IS
    'the tenants of whom an operator has set itself a time in a partition';

SELECT force_row_level_security('kept_entries');

SELECT for_all_tenants('servioticy_pipeline', 'SELECT', '{kept_entries}');
SELECT for_all_tenants('servioticy_pipeline', 'INSERT', '{kept_entries}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE', '{kept_entries}');
SELECT for_all_tenants('servioticy_pipeline', 'DELETE', '{kept_entries}');
GRANT SELECT, INSERT, UPDATE, DELETE ON kept_entries TO servioticy_pipeline;
