-- kept --
SELECT kept_entries.stream_id, kept_entries.key, value, due
  FROM unnest(%(streams)s::bigint[], %(keys)s::bytea[]) AS wanted(stream_id, key)
  JOIN kept_entries ON kept_entries.stream_id = wanted.stream_id
                   AND kept_entries.key = wanted.key;

-- keep --
INSERT INTO kept_entries (tenant_id, stream_id, key, value, due)
SELECT *
  FROM unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(keys)s::bytea[],
              %(values)s::bytea[], %(dues)s::bigint[])
    ON CONFLICT (stream_id, key) DO UPDATE
   SET value = excluded.value, due = excluded.due;

-- drop --
DELETE FROM kept_entries
 USING unnest(%(tenants)s::bigint[], %(streams)s::bigint[], %(keys)s::bytea[])
       AS gone(tenant_id, stream_id, key)
 WHERE kept_entries.stream_id = gone.stream_id
   AND kept_entries.key = gone.key
   AND kept_entries.tenant_id = gone.tenant_id;

-- due --
-- Those that have been due for longest, ten thousand at most are looked at; of each tenant a few.
-- What was erased or deleted is under numbers that no stream has any more, or of none in force.
SELECT service_object, name, key, due
  FROM (SELECT streams.service_object, streams.name, late.key, late.due,
               row_number() OVER (PARTITION BY late.tenant_id
                                      ORDER BY late.due, late.stream_id, late.key) AS number
          FROM (SELECT tenant_id, stream_id, key, due
                  FROM kept_entries
                 WHERE due <= %(now)s
                 ORDER BY due
                 LIMIT 10000) AS late
          JOIN streams ON streams.stored_as = late.stream_id
                      AND streams.tenant_id = late.tenant_id
          JOIN service_objects ON service_objects.id = streams.service_object
                              AND service_objects.tenant_id = late.tenant_id
         WHERE owner_partition = %(partition)s
           AND active_version IS NOT NULL) AS numbered
 WHERE number <= %(most)s
 ORDER BY due, service_object, name, key;

-- next_due --
SELECT due
  FROM kept_entries
  JOIN streams ON streams.stored_as = kept_entries.stream_id
              AND streams.tenant_id = kept_entries.tenant_id
  JOIN service_objects ON service_objects.id = streams.service_object
                      AND service_objects.tenant_id = kept_entries.tenant_id
 WHERE due > %(after)s
   AND owner_partition = %(partition)s
   AND active_version IS NOT NULL
 ORDER BY due
 LIMIT 1;
