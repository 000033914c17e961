-- What is deleted or erased is gone for everybody at once; its rows go piece by piece, so that
-- nobody waits for them.

-- An erased stream stores its updates under another number from then on: so the old rows are
-- told from the new without looking at them.
ALTER TABLE streams
    ADD COLUMN after_erasure bigint,
    ADD COLUMN stored_as bigint GENERATED ALWAYS AS (coalesce(after_erasure, id)) STORED UNIQUE;
COMMENT ON COLUMN streams.after_erasure IS
    'taken from the same numbers as id when the stream was last erased; null: it never was';
COMMENT ON COLUMN streams.stored_as IS
    'stream_id of its updates, last update, verdicts and usage; subscriptions have its id';

CREATE VIEW readable_streams AS
SELECT streams.id, streams.tenant_id, service_object, name, stored_as
  FROM streams
  JOIN service_objects ON service_objects.id = service_object
 WHERE active_change < 9223372036854775807;
COMMENT ON VIEW readable_streams IS
    'without those of deleted Service Objects (partition.sql, delete), whose rows are still going';

CREATE TABLE purge (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    log_partition integer NOT NULL,
    tenant_id bigint NOT NULL,
    service_object text UNIQUE,
    stored_as bigint UNIQUE,
    reached bigint NOT NULL DEFAULT -9223372036854775808,
    CHECK (num_nonnulls(service_object, stored_as) = 1)
);
COMMENT ON TABLE purge IS
    'what nobody can read any more and is still to be removed: a deleted Service Object, or what '
    'is stored under the number of a stream that was erased or deleted';
COMMENT ON COLUMN purge.log_partition IS 'whose task removes it';
COMMENT ON COLUMN purge.reached IS
    'updates up to this timestamp are removed: what follows is found without passing them again';
CREATE INDEX purge_by_partition ON purge (log_partition, stored_as, id);

-- Who is deleted leaves the component (partition.sql, delete); so do those deleted before.
UPDATE service_objects
   SET component = 'deleted ' || id
 WHERE active_change = 9223372036854775807;
