-- What each tenant has used, hour by hour, of each stream. Named by words and not by numbers: what
-- was used is to be paid when the stream is gone.

CREATE TABLE usage_hours (
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    hour bigint NOT NULL,
    service_object text NOT NULL,
    stream text NOT NULL,
    provider_id bigint NOT NULL,
    updates_in bigint NOT NULL DEFAULT 0,
    computations jsonb NOT NULL DEFAULT '{}',
    processor_us bigint NOT NULL DEFAULT 0,
    stored_rows bigint NOT NULL DEFAULT 0,
    stored_bytes bigint NOT NULL DEFAULT 0,
    deliveries bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, hour, service_object, stream, provider_id)
);
COMMENT ON COLUMN usage_hours.tenant_id IS 'who pays: who sends, computes, or has it delivered';
COMMENT ON COLUMN usage_hours.hour IS 'when it began, in milliseconds since 1970';
COMMENT ON COLUMN usage_hours.provider_id IS
    'whose stream woke the computations, or was delivered; the tenant itself, or who granted it';
COMMENT ON COLUMN usage_hours.computations IS 'how many ended with which verdict';
CREATE INDEX usage_hours_by_provider ON usage_hours (provider_id, hour)
 WHERE provider_id <> tenant_id;
CREATE INDEX usage_hours_by_hour ON usage_hours (hour);

CREATE FUNCTION this_hour() RETURNS bigint LANGUAGE sql STABLE AS $$
SELECT floor(extract(epoch FROM now()) / 3600)::bigint * 3600000
$$;

CREATE FUNCTION counts_added(a jsonb, b jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
SELECT coalesce(jsonb_object_agg(name, times), '{}')
  FROM (SELECT name, sum(times::bigint) AS times
          FROM (SELECT * FROM jsonb_each_text(a)
                 UNION ALL
                SELECT * FROM jsonb_each_text(b)) AS counted (name, times)
         GROUP BY name) AS added
$$;

CREATE AGGREGATE counts_summed(jsonb) (SFUNC = counts_added, STYPE = jsonb, INITCOND = '{}');
