-- What reads take of the API's processor is on the accounts, too, and has a quota.

ALTER TABLE usage_hours ADD COLUMN read_us bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN usage_hours.read_us IS
    'processor time of the API for reads; they stand under an empty name of a stream';
ALTER TABLE used_amounts ADD COLUMN read_us bigint NOT NULL DEFAULT 0;

DROP FUNCTION note_used(bigint, bigint, bigint, bigint);

-- Of a tenant that is still there. What ends in the next hour counts in that.
CREATE FUNCTION note_used(
    tenant bigint, computations bigint, processor_us bigint, deliveries bigint,
    read_us bigint DEFAULT 0)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO used_amounts AS used (tenant_id, hour, computations, processor_us, deliveries,
                                      read_us)
    SELECT id, this_hour(), note_used.computations, note_used.processor_us, note_used.deliveries,
           note_used.read_us
      FROM tenants
     WHERE id = tenant
        ON CONFLICT (tenant_id) DO UPDATE
       SET hour = greatest(used.hour, excluded.hour),
           computations = excluded.computations
               + CASE WHEN used.hour < excluded.hour THEN 0 ELSE used.computations END,
           processor_us = excluded.processor_us
               + CASE WHEN used.hour < excluded.hour THEN 0 ELSE used.processor_us END,
           deliveries = excluded.deliveries
               + CASE WHEN used.hour < excluded.hour THEN 0 ELSE used.deliveries END,
           read_us = excluded.read_us
               + CASE WHEN used.hour < excluded.hour THEN 0 ELSE used.read_us END;
END $$;

-- What its reads took is a tenant's own: the API notes it among the rows of who read.
GRANT INSERT, UPDATE ON usage_hours, used_amounts TO servioticy_api;
