-- How long updates are kept. What documents have said before is not acted upon until they are put
-- again: nobody loses by a new release what was promised to stay.

CREATE TABLE retention (
    is_it boolean PRIMARY KEY DEFAULT true CHECK (is_it),
    seconds bigint CHECK (seconds > 0)
);
COMMENT ON TABLE retention IS
    'how long updates are kept of streams whose documents say nothing; no row or null: for ever';

ALTER TABLE streams ADD COLUMN kept_seconds bigint;
COMMENT ON COLUMN streams.kept_seconds IS
    'how long its updates are kept; -1: for ever; null: its document says nothing';
CREATE INDEX streams_by_tenant ON streams (tenant_id, id);
CREATE INDEX streams_that_forget ON streams (tenant_id) WHERE kept_seconds > 0;

-- The rule of servioticy/domain/retention.py: in the unit of the newest update, if that tells time.
CREATE FUNCTION kept_from(newest bigint, seconds bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN seconds < 0 THEN (-9223372036854775808)::bigint
                WHEN newest >= 100000000000
                THEN (extract(epoch FROM now()) * 1000)::bigint - seconds * 1000
                WHEN newest >= 100000000
                THEN extract(epoch FROM now())::bigint - seconds
                ELSE (-9223372036854775808)::bigint END
$$;
COMMENT ON FUNCTION kept_from IS 'the timestamp at which the history of a stream begins';

CREATE VIEW kept_histories WITH (security_invoker = true) AS
SELECT streams.id, streams.tenant_id,
       CASE WHEN coalesce(kept_seconds, seconds, -1) < 0 THEN (-9223372036854775808)::bigint
            ELSE kept_from((SELECT max("timestamp")
                              FROM updates
                             WHERE stream_id = stored_as
                               AND updates.tenant_id = streams.tenant_id),
                           coalesce(kept_seconds, seconds)) END AS kept_from
  FROM streams
  LEFT JOIN retention ON true;
COMMENT ON VIEW kept_histories IS
    'from which timestamp on readers see the history of a stream: what is before it goes in time';

GRANT SELECT ON retention, kept_histories
   TO servioticy_api, servioticy_pipeline, servioticy_delivery;
GRANT INSERT, UPDATE (seconds) ON retention TO servioticy_pipeline;
