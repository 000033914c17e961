-- tell --
-- How programs are on a node.
INSERT INTO operator_runs
       (tenant_id, name, version, node, state, restarts, problem, printed, warmed)
SELECT tenants.id, told.name, version, %(node)s, state, restarts, problem, printed, warmed
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
SELECT pg_notify(%(channel)s, %(said)s);

-- warmed --
-- The answer to one who wanted a program begun: that begins with the number of the question.
SELECT warmed
  FROM operator_runs
 WHERE tenant_id = %(tenant)s
   AND name = %(name)s
   AND version = %(version)s
   AND split_part(warmed, ' ', 1) = %(id)s;
