-- come --
-- This process hears what is told from now on, for as long as its connection lives; others are
-- told so after that is seen.
SELECT pg_advisory_lock_shared(%(key)s, 0), pg_notify('servioticy_rates', %(said)s);

-- tell --
-- A notification for each of these texts, and a row to who tells; nothing of it is written down.
-- None where the queue of what nobody has heard yet is too full.
SELECT pg_notify('servioticy_rates', told.said)
  FROM unnest(%(said)s::text[]) AS told (said)
 WHERE (SELECT pg_notification_queue_usage()) < %(most_waiting)s;

-- processes --
SELECT count(*)
  FROM pg_locks
 WHERE locktype = 'advisory'
   AND objsubid = 2
   AND classid::bigint = %(key)s
   AND objid::bigint = 0
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND granted;
