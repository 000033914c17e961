-- has_rows --
SELECT EXISTS (SELECT FROM {table});

-- programs --
-- Whether a program of the platform works on this database: it holds one of its locks.
SELECT EXISTS (SELECT FROM pg_locks
                WHERE locktype = 'advisory'
                  AND pid <> pg_backend_pid()
                  AND database = (SELECT oid FROM pg_database
                                   WHERE datname = current_database()));

-- exists --
SELECT to_regclass('public.' || quote_ident(%(table)s)) IS NOT NULL;

-- is_forced --
SELECT relforcerowsecurity
  FROM pg_class
 WHERE oid = %(table)s::regclass;

-- set_sequence --
SELECT setval(%(sequence)s::regclass, %(value)s, %(called)s);

-- forget_log --
-- Of an empty platform that has been started before.
DELETE FROM progress;
DELETE FROM log_identity;

-- crossings --
-- Which there are.
SELECT log_partition, log_offset, tree, number
  FROM crossings;

-- crossing --
SELECT record
  FROM crossings
 WHERE (log_partition, log_offset, tree, number)
       = (%(log_partition)s, %(log_offset)s, %(tree)s, %(number)s);

-- store_crossing --
UPDATE crossings
   SET record = %(record)s
 WHERE (log_partition, log_offset, tree, number)
       = (%(log_partition)s, %(log_offset)s, %(tree)s, %(number)s);

-- forwarded_before --
-- Nothing had come from there: what comes may have places below zero.
INSERT INTO forwarded (to_partition, from_partition, next_offset)
VALUES (%(to)s, %(from)s, -4611686018427387904)
ON CONFLICT DO NOTHING;

-- forwarded --
SELECT to_partition, from_partition, next_offset
  FROM forwarded;
