-- activate --
-- A version is in force, unless a later change has been made already.
UPDATE service_objects
   SET active_version = %(version)s, active_change = %(change)s
 WHERE id = %(service_object)s
   AND (active_change < %(change)s OR active_version IS NULL AND active_change = 0)
RETURNING tenant_id;

-- activate_all --
-- The same of many.
UPDATE service_objects
   SET active_version = made.version, active_change = made.change
  FROM unnest(%(service_objects)s::text[], %(versions)s::integer[], %(changes)s::bigint[])
       AS made (id, version, change)
 WHERE service_objects.id = made.id
   AND (active_change < made.change OR active_version IS NULL AND active_change = 0);

-- allow --
UPDATE grants
   SET active = true
 WHERE id = %(grant)s;

-- revoke --
DELETE FROM grants
 WHERE id = %(grant)s;

-- release --
-- From here on another partition computes these Service Objects, and wakes them.
WITH moved AS (
    UPDATE service_objects
       SET owner_partition = %(to_partition)s
     WHERE id = ANY(%(service_objects)s::text[])
       AND owner_partition = %(partition)s
    RETURNING tenant_id, id
)
UPDATE kept_entries
   SET log_partition = %(to_partition)s
  FROM moved
  JOIN streams ON streams.service_object = moved.id
              AND streams.tenant_id = moved.tenant_id
 WHERE kept_entries.stream_id = streams.stored_as
   AND kept_entries.tenant_id = streams.tenant_id
   AND due IS NOT NULL;

-- delete --
-- A Service Object is gone, and nothing of its streams can be read any more; what is stored is
-- left to be removed. The row stays: its id is used up, and no definition record can put it in
-- force again. It leaves its component, which else would be ever longer to load.
WITH gone AS (
    UPDATE service_objects
       SET active_version = NULL, active_change = 9223372036854775807,
           component = 'deleted ' || id
     WHERE id = %(service_object)s
    RETURNING id, tenant_id
), ended AS (
    DELETE FROM grants
     USING gone
     WHERE grants.service_object = gone.id
       AND grants.tenant_id = gone.tenant_id
), left_behind AS (
    INSERT INTO purge (log_partition, tenant_id, service_object)
    SELECT %(partition)s, tenant_id, id
      FROM gone
        ON CONFLICT DO NOTHING
)
SELECT tenant_id
  FROM gone;

-- erase --
-- Where this change is a later one than the stream's last erasure: what comes is stored under
-- another number, verdicts and usage with it, and what there was is left to be removed.
WITH before AS (
    SELECT id, stored_as
      FROM streams
     WHERE service_object = %(service_object)s
       AND name = %(stream)s
       AND (erased_by < %(change)s OR %(change)s = 0)
       FOR UPDATE
), renumbered AS (
    UPDATE streams
       SET erased_by = %(change)s,
           after_erasure = nextval(pg_get_serial_sequence('streams', 'id'))
      FROM before
     WHERE streams.id = before.id
    RETURNING tenant_id, before.stored_as AS old, streams.stored_as AS new
), state AS (
    DELETE FROM states
     USING renumbered
     WHERE stream_id = old
    RETURNING states.tenant_id, octet_length(taken_back::text) AS bytes
), less AS (
    UPDATE stored_amounts
       SET bytes = greatest(0, stored_amounts.bytes - state.bytes)
      FROM state
     WHERE stored_amounts.tenant_id = state.tenant_id
       AND state.bytes > 0
), counted AS (
    UPDATE verdicts
       SET stream_id = new
      FROM renumbered
     WHERE stream_id = old
), used AS (
    UPDATE usage
       SET stream_id = new
      FROM renumbered
     WHERE stream_id = old
)
INSERT INTO purge (log_partition, tenant_id, stored_as)
SELECT %(partition)s, tenant_id, old
  FROM renumbered;
