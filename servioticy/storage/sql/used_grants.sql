-- used --
-- By which grant each tenant uses each of these streams of others, where there is one; and whether
-- a minute has passed since that was noted.
SELECT tenant_id, service_object, stream, grant_id, to_note
  FROM unnest(%(receivers)s::bigint[], %(service_objects)s::text[], %(streams)s::text[])
       AS asked (tenant_id, service_object, stream)
 CROSS JOIN LATERAL grant_used(service_object, stream, tenant_id, %(deriving)s);

-- note --
-- With the grant, and in the audit logs of both sides.
SELECT note_grant_used(%(grant)s);
