-- come --
-- This process hears what is told from now on, for as long as its connection lives; others are
-- told so after that is seen.
SELECT pg_advisory_lock_shared(%(key)s, 0), pg_notify('servioticy_rates', %(said)s);

-- tell --
-- A notification for each of these texts: no row is written.
SELECT pg_notify('servioticy_rates', told.said)
  FROM unnest(%(said)s::text[]) AS told (said);

-- processes --
SELECT count(*)
  FROM pg_locks
 WHERE locktype = 'advisory'
   AND objsubid = 2
   AND classid::bigint = %(key)s
   AND objid::bigint = 0
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND granted;
