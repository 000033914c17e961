-- What a tenant has used of its quotas of an hour, in one row: it is asked every few seconds, and
-- `usage_hours` has a row for each stream.

CREATE TABLE used_amounts (
    tenant_id bigint PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    hour bigint NOT NULL,
    computations bigint NOT NULL,
    processor_us bigint NOT NULL,
    deliveries bigint NOT NULL
);
COMMENT ON TABLE used_amounts IS 'what a tenant has used in the latest hour: some seconds late';
COMMENT ON COLUMN used_amounts.hour IS 'as in usage_hours: when it began';
CREATE INDEX used_amounts_by_hour ON used_amounts (hour);

-- Of a tenant that is still there. What ends in the next hour counts in that.
CREATE FUNCTION note_used(
    tenant bigint, computations bigint, processor_us bigint, deliveries bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO used_amounts AS used (tenant_id, hour, computations, processor_us, deliveries)
    SELECT id, this_hour(), note_used.computations, note_used.processor_us, note_used.deliveries
      FROM tenants
     WHERE id = tenant
        ON CONFLICT (tenant_id) DO UPDATE
       SET hour = greatest(used.hour, excluded.hour),
           computations = excluded.computations
               + CASE WHEN used.hour < excluded.hour THEN 0 ELSE used.computations END,
           processor_us = excluded.processor_us
               + CASE WHEN used.hour < excluded.hour THEN 0 ELSE used.processor_us END,
           deliveries = excluded.deliveries
               + CASE WHEN used.hour < excluded.hour THEN 0 ELSE used.deliveries END;
END $$;

SELECT force_row_level_security('used_amounts');
SELECT for_all_tenants('servioticy_pipeline', 'SELECT', '{quotas, used_amounts}');
SELECT for_all_tenants('servioticy_pipeline', 'INSERT', '{used_amounts}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE', '{used_amounts}');
SELECT for_all_tenants('servioticy_delivery', 'SELECT', '{used_amounts}');
SELECT for_all_tenants('servioticy_delivery', 'INSERT', '{used_amounts}');
SELECT for_all_tenants('servioticy_delivery', 'UPDATE', '{used_amounts}');
GRANT SELECT ON used_amounts TO servioticy_api;
GRANT SELECT ON quotas TO servioticy_pipeline;
GRANT SELECT, INSERT, UPDATE ON used_amounts TO servioticy_pipeline, servioticy_delivery;

-- How many streams a Service Object has that is made from this content of a template.
CREATE FUNCTION streams_in(content json) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
SELECT CASE json_typeof(content #> '{document,streams}')
       WHEN 'object' THEN (SELECT count(*) FROM json_object_keys(content #> '{document,streams}'))
       ELSE 0 END
$$;
