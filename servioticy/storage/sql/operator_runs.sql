-- tell --
-- How programs are on a node.
INSERT INTO operator_runs
       (tenant_id, name, version, node, state, restarts, problem, printed)
SELECT tenants.id, told.name, version, %(node)s, state, restarts, problem, printed
  FROM unnest(%(of)s::bigint[], %(names)s::text[], %(versions)s::int[], %(states)s::text[],
              %(restarts)s::int[], %(problems)s::text[], %(printed)s::text[])
       AS told (tenant, name, version, state, restarts, problem, printed)
  JOIN tenants ON tenants.id = tenant
    ON CONFLICT (tenant_id, name, version, node) DO UPDATE
   SET state = excluded.state,
       restarts = excluded.restarts,
       problem = excluded.problem,
       printed = excluded.printed,
       told_at = now()
RETURNING 1;

-- forget --
-- What a node, or nobody, tells of any more.
DELETE FROM operator_runs
 WHERE node = %(node)s AND told_at < now() - interval '1 minute'
    OR told_at < now() - interval '1 hour';
