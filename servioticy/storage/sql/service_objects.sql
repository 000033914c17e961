-- ids --
SELECT id
  FROM service_objects
 WHERE tenant_id = %(tenant)s
   AND deleted_at IS NULL
 ORDER BY sequence;

-- current --
SELECT service_objects.version, revision, document::text, custom_fields::text, updated_at
  FROM service_objects
  JOIN definitions ON service_object = id AND definitions.version = service_objects.version
   AND definitions.tenant_id = service_objects.tenant_id
 WHERE id = %(id)s
   AND service_objects.tenant_id = %(tenant)s
   AND deleted_at IS NULL;

-- versions --
SELECT version, created_at
  FROM definitions
 WHERE service_object = %(id)s
   AND tenant_id = %(tenant)s
 ORDER BY version;

-- documents --
SELECT definitions.tenant_id, service_object, definitions.version, document::text
  FROM unnest(%(tenants)s::bigint[], %(ids)s::text[], %(versions)s::integer[])
       AS wanted (tenant_id, id, version)
  JOIN definitions ON service_object = wanted.id AND definitions.version = wanted.version
   AND definitions.tenant_id = wanted.tenant_id;

-- operator_owners --
-- Whom a version means by the names of others whose programs it names.
SELECT operator_owners
  FROM definitions
 WHERE service_object = %(service_object)s
   AND version = %(version)s
   AND tenant_id = %(tenant)s;

-- customise --
-- Only where nothing has changed since the revision that was read.
UPDATE service_objects
   SET custom_fields = %(custom_fields)s, updated_at = %(now)s, revision = revision + 1
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
   AND revision = %(revision)s
   AND deleted_at IS NULL
RETURNING revision;
