-- page --
-- The newest first. Who acts for another tenant is told by that only: its tokens are its own.
SELECT number, at, action, kind, subject, actor_tenant IS NULL AS by_platform,
       actor_tenant = tenant_id AS own, actor_token
  FROM audit
 WHERE tenant_id = %(tenant)s
   AND (kind = %(kind)s OR %(kind)s = '')
   AND number < %(before)s
   AND at > now() - %(days)s * interval '1 day'
 ORDER BY number DESC
 LIMIT %(limit)s;

-- forget --
-- Between tenants: what is too old goes, whosesoever it is; a few of them at once.
DELETE FROM audit
 WHERE (tenant_id, number) IN (
       SELECT tenant_id, number
         FROM audit
        WHERE at < now() - %(days)s * interval '1 day'
        ORDER BY at
        LIMIT %(most)s)
RETURNING number;
