-- search --
-- Between tenants: what is public is everybody's to read, as `readers` says; which would be asked
-- for each Service Object of others.
-- The caller's Service Objects, and those of others that are public where these are asked for;
-- every condition that is null or empty holds. Distances are in kilometres, on a sphere.
SELECT service_objects.id, listings.name, service_objects.public, created_at, updated_at,
       listings.tenant_id = %(tenant)s AS own
  FROM listings
  JOIN service_objects ON service_objects.id = listings.service_object
   AND service_objects.tenant_id = listings.tenant_id
   AND deleted_at IS NULL
 WHERE (listings.tenant_id = %(tenant)s OR %(others)s AND (
           service_objects.public
        OR listings.service_object IN (SELECT granted_objects(%(tenant)s))))
   AND listings.service_object > %(after)s
   AND (%(name)s::text IS NULL OR strpos(lower(listings.name), lower(%(name)s)) > 0)
   AND listings.fields @> %(fields)s::text[]
   AND listings.channel_types @> %(channel_types)s::text[]
   AND (%(stream)s::text IS NULL OR EXISTS (
           SELECT FROM streams
            WHERE streams.service_object = listings.service_object
              AND streams.tenant_id = listings.tenant_id
              AND streams.name = %(stream)s
              AND declared))
   AND (%(stream_name)s::text IS NULL OR EXISTS (
           SELECT FROM streams
            WHERE streams.service_object = listings.service_object
              AND streams.tenant_id = listings.tenant_id
              AND strpos(lower(streams.name), lower(%(stream_name)s)) > 0
              AND declared))
   AND (%(kilometres)s::float8 IS NULL OR (
           latitude BETWEEN %(latitude)s - %(kilometres)s / 111.0
                        AND %(latitude)s + %(kilometres)s / 111.0
       AND 2 * 6371.0088 * asin(least(1, sqrt(
               power(sind((latitude - %(latitude)s) / 2), 2)
             + cosd(latitude) * cosd(%(latitude)s)
             * power(sind((longitude - %(longitude)s) / 2), 2)))) <= %(kilometres)s))
 ORDER BY listings.service_object
 LIMIT %(limit)s;

-- derived --
-- What a document will be listed by, before it is in force; of no table. The caller leaves out
-- customFields by which nothing is found, as they are too large.
SELECT listed_name(document), listed_channel_types(document), listed_fields(searched), place[1],
       place[2]
  FROM (SELECT %(document)s::json AS document, %(custom_fields)s::json AS searched) AS new
 CROSS JOIN LATERAL listed_place(searched) AS place;
