-- The rule of servioticy/domain/access.py for SQL: an owner reads its own, everybody what is
-- public.

CREATE VIEW readers AS
SELECT service_objects.id AS service_object, tenants.id AS tenant_id
  FROM service_objects
  JOIN tenants ON service_objects.public OR tenants.id = service_objects.tenant_id;
COMMENT ON VIEW readers IS 'which tenants may read which Service Object';
