-- members --
-- Between tenants: what is public is everybody's to read, as `readers` says.
-- The Service Objects for which all conditions hold, the oldest first; never the reader itself.
-- Of others only those whose documents may be read, as the conditions are about these; whose
-- streams may be, then.
SELECT service_objects.id
  FROM listings
  JOIN service_objects ON service_objects.id = listings.service_object
   AND service_objects.tenant_id = listings.tenant_id
   AND deleted_at IS NULL
  JOIN streams ON streams.service_object = listings.service_object
   AND streams.tenant_id = listings.tenant_id
   AND streams.name = %(stream)s
   AND declared
 WHERE (listings.tenant_id = %(tenant)s OR %(others)s AND (
           service_objects.public
        OR listings.service_object IN (SELECT granted_objects(%(tenant)s))))
   AND listings.service_object <> %(reader)s
   AND listings.fields @> %(fields)s::text[]
   AND NOT EXISTS (
           SELECT FROM json_array_elements(%(choices)s::json) AS choices
            WHERE NOT listings.fields && ARRAY(SELECT json_array_elements_text(choices)))
   AND (%(names)s::text[] IS NULL OR listings.name = ANY(%(names)s::text[]))
   AND (%(templates)s::text[] IS NULL OR EXISTS (
           SELECT FROM template_objects
            WHERE template_objects.service_object = listings.service_object
              AND template_objects.tenant_id = listings.tenant_id
              AND template = ANY(%(templates)s::text[])))
 ORDER BY service_objects.sequence
 LIMIT %(limit)s;

-- spread --
-- Between tenants: work for all of them goes on by turns.
-- From whose Service Objects have changed to whose dynamic groups that may concern. Whoever
-- changes one in the same moment waits for the mark to go, and marks anew.
WITH changed AS (
    DELETE FROM membership_marks
    RETURNING tenant_id
)
INSERT INTO group_looks (tenant_id)
SELECT DISTINCT dynamic_groups.tenant_id
  FROM dynamic_groups
 WHERE EXISTS (SELECT FROM changed)
   AND (others OR dynamic_groups.tenant_id IN (SELECT tenant_id FROM changed))
    ON CONFLICT (tenant_id) DO UPDATE
   SET again = group_looks.after <> '';

-- next_look --
-- Between tenants: work for all of them goes on by turns.
-- Whose turn it is: whatever comes of it, the next one is another tenant's.
UPDATE group_looks
   SET looked_at = clock_timestamp()
 WHERE tenant_id = (SELECT tenant_id FROM group_looks ORDER BY looked_at, tenant_id LIMIT 1)
RETURNING tenant_id, after;

-- readers --
-- The next Service Objects that have dynamic groups.
SELECT DISTINCT service_object
  FROM dynamic_groups
 WHERE tenant_id = %(tenant)s
   AND service_object > %(after)s
 ORDER BY service_object
 LIMIT %(limit)s;

-- looked --
UPDATE group_looks
   SET after = %(after)s
 WHERE tenant_id = %(tenant)s;

-- looked_at_all --
-- Unless something has changed since that began.
WITH begun AS (
    UPDATE group_looks
       SET after = '', again = false
     WHERE tenant_id = %(tenant)s
       AND again
)
DELETE FROM group_looks
 WHERE tenant_id = %(tenant)s
   AND NOT again;

-- automatic --
-- The version was made by the follower; of those before it a few stay.
WITH noted AS (
    UPDATE definitions
       SET automatic = true
     WHERE service_object = %(id)s
       AND tenant_id = %(tenant)s
       AND version = %(version)s
)
DELETE FROM definitions
 USING service_objects
 WHERE service_objects.id = %(id)s
   AND service_objects.tenant_id = %(tenant)s
   AND definitions.service_object = service_objects.id
   AND definitions.tenant_id = service_objects.tenant_id
   AND automatic
   AND definitions.version < %(version)s - %(keep)s
   AND definitions.version < service_objects.active_version
   AND definitions.version <> service_objects.version;

-- since --
-- When the version in force came to be, which holds who belongs.
SELECT created_at
  FROM definitions
 WHERE service_object = %(id)s
   AND tenant_id = %(tenant)s
   AND version = %(version)s;

-- template_of --
SELECT template, version, parameters::text
  FROM template_objects
 WHERE service_object = %(id)s
   AND tenant_id = %(tenant)s;
