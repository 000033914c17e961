-- lock --
SELECT pg_advisory_xact_lock(%(key)s);

-- wait_no_longer --
SELECT set_config('lock_timeout', %(wait)s, true);

-- see_all_or_fail --
-- A migration from which row level security would hide rows fails, and does not change some only.
SET LOCAL row_security = off;

-- prepare --
-- Before 0011 no checksums were kept.
CREATE TABLE IF NOT EXISTS migrations (
    name text PRIMARY KEY
);
ALTER TABLE migrations ADD COLUMN IF NOT EXISTS checksum text;

-- exists --
SELECT to_regclass('public.migrations') IS NOT NULL;

-- applied --
SELECT name, checksum
  FROM migrations;

-- note --
INSERT INTO migrations (name, checksum)
VALUES (%(name)s, %(checksum)s);

-- note_checksum --
UPDATE migrations
   SET checksum = %(checksum)s
 WHERE name = %(name)s;
