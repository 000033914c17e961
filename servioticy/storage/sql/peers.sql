-- come --
-- This process hears what is told from now on, for as long as its connection lives; others are
-- told so after that is seen.
SELECT pg_advisory_lock_shared(%(key)s, %(process)s),
       pg_notify('servioticy_peers', pg_current_xact_id()::text || ' ' || %(said)s);

-- tell --
-- A notification for each of these texts, and a row to who tells; nothing of it is written down.
-- Each begins with the number of this transaction, which a notification has in any case: of two,
-- of which one was seen by who made the other, the later has the larger. None where the queue of
-- what nobody has heard yet is too full.
SELECT pg_current_xact_id()::text::bigint,
       pg_notify('servioticy_peers', pg_current_xact_id()::text || ' ' || told.said)
  FROM unnest(%(said)s::text[]) AS told (said)
 WHERE (SELECT pg_notification_queue_usage()) < %(most_waiting)s;

-- processes --
SELECT objid::bigint
  FROM pg_locks
 WHERE locktype = 'advisory'
   AND objsubid = 2
   AND classid::bigint = %(key)s
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND granted;
