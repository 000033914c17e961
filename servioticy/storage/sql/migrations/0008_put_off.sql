-- Records of the log that are computed later than at their place, because their tenant has
-- used its share of the partition's time. Progress passes them; nothing else does.

CREATE TABLE put_off (
    log_partition   integer NOT NULL,
    log_offset      bigint NOT NULL,
    tenant_id       bigint NOT NULL,
    service_object  text NOT NULL,
    record          bytea NOT NULL,
    taken_up        boolean NOT NULL DEFAULT false,
    PRIMARY KEY (log_partition, log_offset)
);
COMMENT ON COLUMN put_off.record IS 'as it stands in the log';
COMMENT ON COLUMN put_off.taken_up IS
    'computed and stored; the row stays until all that came of it is emitted';
CREATE INDEX put_off_waiting ON put_off (log_partition, tenant_id, log_offset) WHERE NOT taken_up;
-- It is read once and goes: to compress it would cost more than it saves.
ALTER TABLE put_off ALTER COLUMN record SET STORAGE EXTERNAL;
