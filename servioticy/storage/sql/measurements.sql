-- add --
-- What was measured of woven steps, in the order in which it was published.
INSERT INTO measurements (kind, purpose, sequence, measured)
SELECT *
  FROM unnest(%(kinds)s::text[], %(purposes)s::text[], %(sequences)s::text[],
              %(documents)s::json[]);

-- forget --
-- The oldest rows, as many as there are more than so many.
DELETE FROM measurements
 WHERE id IN (SELECT id
                FROM measurements
               WHERE id <= (SELECT max(id) FROM measurements) - %(most)s
               ORDER BY id
               LIMIT %(at_once)s);
