-- kept --
SELECT kept_entries.stream_id, kept_entries.key, value, due
  FROM unnest(%(streams)s::bigint[], %(keys)s::bytea[]) AS wanted(stream_id, key)
  JOIN kept_entries ON kept_entries.stream_id = wanted.stream_id
                   AND kept_entries.key = wanted.key;

-- keep --
INSERT INTO kept_entries (log_partition, tenant_id, stream_id, key, value, due)
SELECT %(partition)s, wanted.*
  FROM unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(keys)s::bytea[],
              %(values)s::bytea[], %(dues)s::bigint[]) AS wanted
    ON CONFLICT (stream_id, key) DO UPDATE
   SET value = excluded.value, due = excluded.due, log_partition = excluded.log_partition;

-- drop --
DELETE FROM kept_entries
 USING unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(keys)s::bytea[])
       AS gone(tenant_id, stream_id, key)
 WHERE kept_entries.stream_id = gone.stream_id
   AND kept_entries.key = gone.key
   AND kept_entries.tenant_id = gone.tenant_id;

-- due --
-- Of each tenant that has any in the partition the first ones, so nobody's are looked through for
-- another's. What was erased or deleted is under numbers that no stream has any more, or of none in
-- force.
SELECT theirs.service_object, theirs.name, theirs.key, theirs.due
  FROM tenants_with_times(%(partition)s) AS waiting(tenant_id)
 CROSS JOIN LATERAL (
       SELECT streams.service_object, streams.name, kept_entries.key, due
         FROM kept_entries
         JOIN streams ON streams.stored_as = kept_entries.stream_id
                     AND streams.tenant_id = kept_entries.tenant_id
         JOIN service_objects ON service_objects.id = streams.service_object
                             AND service_objects.tenant_id = kept_entries.tenant_id
        WHERE kept_entries.log_partition = %(partition)s
          AND kept_entries.tenant_id = waiting.tenant_id
          AND due BETWEEN 0 AND %(now)s
          AND active_version IS NOT NULL
        ORDER BY due, kept_entries.stream_id, key
        LIMIT %(most)s) AS theirs
 ORDER BY due, service_object, name, key;

-- to_ask --
-- The same of those that are due long before 1970: for these somebody outside is to be asked.
SELECT waiting.tenant_id, theirs.service_object, theirs.name, theirs.stream_id, theirs.key,
       theirs.value
  FROM tenants_with_times(%(partition)s) AS waiting(tenant_id)
 CROSS JOIN LATERAL (
       SELECT streams.service_object, streams.name, kept_entries.stream_id, key, value, due
         FROM kept_entries
         JOIN streams ON streams.stored_as = kept_entries.stream_id
                     AND streams.tenant_id = kept_entries.tenant_id
         JOIN service_objects ON service_objects.id = streams.service_object
                             AND service_objects.tenant_id = kept_entries.tenant_id
        WHERE kept_entries.log_partition = %(partition)s
          AND kept_entries.tenant_id = waiting.tenant_id
          AND due < 0
          AND active_version IS NOT NULL
        ORDER BY due, kept_entries.stream_id, key
        LIMIT %(most)s) AS theirs
 ORDER BY due, service_object, name, key;

-- next_due --
SELECT min(first.due)
  FROM tenants_with_times(%(partition)s) AS waiting(tenant_id)
 CROSS JOIN LATERAL (
       SELECT due
         FROM kept_entries
        WHERE log_partition = %(partition)s
          AND kept_entries.tenant_id = waiting.tenant_id
          AND due > %(after)s
        ORDER BY due
        LIMIT 1) AS first;
