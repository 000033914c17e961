-- What Service Objects are listed and searched by, out of their documents: to look into these for
-- each question would take a second for ten thousand of them. A trigger keeps it in step, whoever
-- writes; what a document says there in an odd way is not found, and refuses nothing.

CREATE TABLE listings (
    service_object text PRIMARY KEY REFERENCES service_objects ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    name text,
    fields text[] NOT NULL,
    channel_types text[] NOT NULL,
    latitude double precision,
    longitude double precision
);
COMMENT ON COLUMN listings.fields IS
    'customFields, each as path=value: a.b=5; of an array each element';
COMMENT ON COLUMN listings.latitude IS 'of customFields.location, as is longitude';
CREATE INDEX listings_by_tenant ON listings (tenant_id, service_object);
CREATE INDEX listings_by_field ON listings USING gin (fields);
CREATE INDEX listings_by_latitude ON listings (tenant_id, latitude) WHERE latitude IS NOT NULL;

CREATE FUNCTION object_or_empty(value json) RETURNS json IMMUTABLE LANGUAGE sql AS
$$ SELECT CASE WHEN json_typeof(value) = 'object' THEN value ELSE '{}' END $$;

CREATE FUNCTION array_or_empty(value json) RETURNS json IMMUTABLE LANGUAGE sql AS
$$ SELECT CASE WHEN json_typeof(value) = 'array' THEN value ELSE '[]' END $$;

-- The first 1,000, down to the fifth level, none longer than 300 characters.
CREATE FUNCTION listed_fields(custom_fields json) RETURNS text[] IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        WITH RECURSIVE parts (path, value, depth) AS (
            SELECT key, value, 1
              FROM json_each(object_or_empty(custom_fields))
             UNION ALL
            SELECT parts.path || below.step, below.value, depth + 1
              FROM parts
             CROSS JOIN LATERAL (
                   SELECT '.' || key AS step, value
                     FROM json_each(object_or_empty(parts.value))
                    UNION ALL
                   SELECT '', value
                     FROM json_array_elements(array_or_empty(parts.value))) AS below
             WHERE depth < 5
        ), found AS (
            SELECT path || '=' || (value #>> '{}') AS field
              FROM parts
             WHERE json_typeof(value) IN ('string', 'number', 'boolean')
               AND octet_length(value::text) <= 300
             LIMIT 1000
        )
        SELECT coalesce(array_agg(DISTINCT field), '{}')
          FROM found
         WHERE length(field) <= 300);
EXCEPTION WHEN data_exception THEN  -- a NUL, which text cannot hold
    RETURN '{}';
END $$;

CREATE FUNCTION listed_channel_types(document json) RETURNS text[] IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT coalesce(array_agg(DISTINCT lower(regexp_replace(type, '\s', '', 'g'))), '{}')
          FROM json_each(object_or_empty(document -> 'streams')) AS stream
         CROSS JOIN LATERAL json_each(object_or_empty(
               object_or_empty(stream.value) -> 'channels')) AS channel
         CROSS JOIN LATERAL (SELECT object_or_empty(channel.value) ->> 'type' AS type) AS declared
         WHERE length(type) <= 100);
EXCEPTION WHEN data_exception THEN
    RETURN '{}';
END $$;

CREATE FUNCTION listed_name(document json) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN json_typeof(document -> 'name') = 'string'
                THEN left(document ->> 'name', 200) END;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;

-- Latitude and longitude of "lat,lon" or [lon, lat], or null.
CREATE FUNCTION listed_place(custom_fields json) RETURNS double precision[]
IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
    place json;
    found double precision[];
BEGIN
    place := object_or_empty(custom_fields) -> 'location';
    found := CASE json_typeof(place)
        WHEN 'string' THEN string_to_array(place #>> '{}', ',')::double precision[]
        WHEN 'array' THEN ARRAY[place ->> 1, place ->> 0]::double precision[]
    END;
    IF cardinality(found) = 2 AND found[1] BETWEEN -90 AND 90 AND found[2] BETWEEN -180 AND 180 THEN
        RETURN found;
    END IF;
    RETURN NULL;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;

CREATE FUNCTION list_service_object() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO listings (service_object, tenant_id, name, fields, channel_types, latitude,
                          longitude)
    SELECT id, service_objects.tenant_id, listed_name(document), listed_fields(custom_fields),
           listed_channel_types(document), place[1], place[2]
      FROM service_objects
      JOIN definitions ON service_object = id AND definitions.version = service_objects.version
     CROSS JOIN LATERAL listed_place(custom_fields) AS place
     WHERE id = NEW.id
    ON CONFLICT (service_object) DO UPDATE
       SET name = excluded.name, fields = excluded.fields,
           channel_types = excluded.channel_types, latitude = excluded.latitude,
           longitude = excluded.longitude;
    RETURN NULL;
END $$;

-- Deferred: the document is written after the row that says it is in force.
CREATE CONSTRAINT TRIGGER list_service_object
 AFTER INSERT OR UPDATE OF version, custom_fields ON service_objects
 DEFERRABLE INITIALLY DEFERRED
   FOR EACH ROW EXECUTE FUNCTION list_service_object();

INSERT INTO listings (service_object, tenant_id, name, fields, channel_types, latitude, longitude)
SELECT id, service_objects.tenant_id, listed_name(document), listed_fields(custom_fields),
       listed_channel_types(document), place[1], place[2]
  FROM service_objects
  JOIN definitions ON service_object = id AND definitions.version = service_objects.version
 CROSS JOIN LATERAL listed_place(custom_fields) AS place
 WHERE deleted_at IS NULL;
