-- address --
-- Between tenants: before it is known who asks there is no tenant to name.
-- All that a request needs, in one round trip: who asks, and what it names.
-- No row: the token is unknown, or its tenant is deleted: a request that was under way then may
-- have made it after the others went. Id or stream id null: that does not exist, or is not named.
SELECT tokens.tenant_id AS caller, service_objects.id, service_objects.tenant_id AS owner,
       coalesce(service_objects.public OR service_objects.tenant_id <> tokens.tenant_id
                AND is_granted(service_objects.id, %(stream)s, tokens.tenant_id, false),
                false) AS granted,
       coalesce(service_objects.version, 0) AS version,
       coalesce(service_objects.route_partition, 0) AS route_partition,
       streams.id AS stream_id, tokens.service_object, tokens.stream, tokens.rights,
       tokens.id,
       least(extract(epoch FROM tokens.expires_at - now()),
             CASE WHEN NOT service_objects.public AND service_objects.tenant_id <> tokens.tenant_id
                  THEN granted_for(service_objects.id, %(stream)s, tokens.tenant_id) END
             )::double precision AS expires_in
  FROM tokens
  JOIN tenants ON tenants.id = tokens.tenant_id AND tenants.deleted_at IS NULL
  LEFT JOIN service_objects ON service_objects.id = %(service_object)s
   AND service_objects.deleted_at IS NULL
  LEFT JOIN streams ON streams.service_object = service_objects.id AND streams.name = %(stream)s
 WHERE tokens.digest = %(digest)s
   AND tokens.revoked_at IS NULL
   AND (tokens.expires_at IS NULL OR tokens.expires_at > now());

-- addresses --
-- Between tenants: before it is known who asks there is no tenant to name.
-- The same for many requests: a row for each whose token is known, with its number.
SELECT number, tokens.tenant_id AS caller, service_objects.id, service_objects.tenant_id AS owner,
       coalesce(service_objects.public OR service_objects.tenant_id <> tokens.tenant_id
                AND is_granted(service_objects.id, asked.stream, tokens.tenant_id, false),
                false) AS granted,
       coalesce(service_objects.version, 0) AS version,
       coalesce(service_objects.route_partition, 0) AS route_partition,
       streams.id AS stream_id, tokens.service_object, tokens.stream, tokens.rights,
       tokens.id,
       least(extract(epoch FROM tokens.expires_at - now()),
             CASE WHEN NOT service_objects.public AND service_objects.tenant_id <> tokens.tenant_id
                  THEN granted_for(service_objects.id, asked.stream, tokens.tenant_id) END
             )::double precision AS expires_in
  FROM unnest(%(digests)s::bytea[], %(service_objects)s::text[], %(streams)s::text[])
       WITH ORDINALITY AS asked (digest, service_object, stream, number)
  JOIN tokens ON tokens.digest = asked.digest AND tokens.revoked_at IS NULL
   AND (tokens.expires_at IS NULL OR tokens.expires_at > now())
  JOIN tenants ON tenants.id = tokens.tenant_id AND tenants.deleted_at IS NULL
  LEFT JOIN service_objects ON service_objects.id = asked.service_object
   AND service_objects.deleted_at IS NULL
  LEFT JOIN streams ON streams.service_object = service_objects.id AND streams.name = asked.stream;

-- addresses_of_members --
-- Between tenants: before it is known who asks there is no tenant to name.
-- The same for persons: a row for each that is a member of the tenant that it names.
SELECT number, members.tenant_id AS caller, service_objects.id, service_objects.tenant_id AS owner,
       coalesce(service_objects.public OR service_objects.tenant_id <> members.tenant_id
                AND is_granted(service_objects.id, asked.stream, members.tenant_id, false),
                false) AS granted,
       coalesce(service_objects.version, 0) AS version,
       coalesce(service_objects.route_partition, 0) AS route_partition,
       streams.id AS stream_id, members.role, members.id,
       (CASE WHEN NOT service_objects.public AND service_objects.tenant_id <> members.tenant_id
             THEN granted_for(service_objects.id, asked.stream, members.tenant_id) END
        )::double precision AS expires_in
  FROM unnest(%(persons)s::bytea[], %(names)s::text[],
              %(service_objects)s::text[], %(streams)s::text[])
       WITH ORDINALITY AS asked (person, tenant, service_object, stream, number)
  JOIN tenants ON tenants.name = asked.tenant AND tenants.deleted_at IS NULL
  JOIN members ON members.tenant_id = tenants.id AND members.person = asked.person
  LEFT JOIN service_objects ON service_objects.id = asked.service_object
   AND service_objects.deleted_at IS NULL
  LEFT JOIN streams ON streams.service_object = service_objects.id AND streams.name = asked.stream;
