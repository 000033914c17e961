-- lock --
SELECT pg_advisory_xact_lock(%(key)s);

-- prepare --
-- Before 0011 no checksums were kept.
CREATE TABLE IF NOT EXISTS migrations (
    name text PRIMARY KEY
);
ALTER TABLE migrations ADD COLUMN IF NOT EXISTS checksum text;

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
