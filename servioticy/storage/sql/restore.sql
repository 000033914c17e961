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

-- begun_trees --
SELECT log_partition, next_tree
  FROM progress;

-- forwarded --
SELECT to_partition, from_partition, next_offset
  FROM forwarded;
