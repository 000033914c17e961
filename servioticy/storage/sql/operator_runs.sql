-- tell --
-- How programs are on a node.
INSERT INTO operator_runs
       (tenant_id, name, version, node, state, restarts, problem, printed, warmed)
SELECT tenants.id, told.name, version, %(node)s, state, restarts, problem, printed,
       coalesce((extract(epoch FROM clock_timestamp()) * 1000)::bigint || ' ' || warmed, '')
  FROM unnest(%(of)s::bigint[], %(names)s::text[], %(versions)s::int[], %(states)s::text[],
              %(restarts)s::int[], %(problems)s::text[], %(printed)s::text[],
              %(warmed)s::text[])
       AS told (tenant, name, version, state, restarts, problem, printed, warmed)
  JOIN tenants ON tenants.id = tenant
    ON CONFLICT (tenant_id, name, version, node) DO UPDATE
   SET state = excluded.state,
       restarts = excluded.restarts,
       problem = excluded.problem,
       printed = excluded.printed,
       warmed = CASE excluded.warmed WHEN '' THEN operator_runs.warmed ELSE excluded.warmed END,
       told_at = now()
RETURNING 1;

-- forget --
-- What a node, or nobody, tells of any more.
DELETE FROM operator_runs
 WHERE node = %(node)s AND told_at < now() - interval '1 minute'
    OR told_at < now() - interval '1 hour';

-- listen --
-- Tells others that this connection hears what is wanted of a partition, for as long as it lives.
SELECT pg_advisory_lock_shared(%(key)s, %(partition)s);

-- is_listened_to --
SELECT EXISTS (
       SELECT
         FROM pg_locks
        WHERE locktype = 'advisory'
          AND objsubid = 2
          AND classid::bigint = %(key)s
          AND objid::bigint = %(partition)s
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database()));

-- want --
-- What is told since then is an answer.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
  FROM (SELECT pg_notify(%(channel)s, %(said)s)) AS said;

-- warmed --
-- What the node of a partition has told last of a program that was wanted, since a time.
SELECT substr(warmed, position(' ' IN warmed) + 1)
  FROM operator_runs
 WHERE tenant_id = %(tenant)s
   AND name = %(name)s
   AND version = %(version)s
   AND split_part(node, '/', 2) = %(partition)s
   AND CASE warmed WHEN '' THEN false
       ELSE split_part(warmed, ' ', 1)::bigint >= %(since)s END
 ORDER BY told_at DESC
 LIMIT 1;
