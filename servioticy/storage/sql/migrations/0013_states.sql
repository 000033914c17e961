-- A stream's last update is the one of the largest timestamp in its history, where the primary
-- key finds it: to keep it twice was a fifth of the work of storing. What only last_updates had
-- is what composites with `staleness: "input"` were last made from; that is their state now.

CREATE TABLE states (
    stream_id bigint PRIMARY KEY,
    tenant_id bigint NOT NULL,
    state bytea NOT NULL
);
COMMENT ON TABLE states IS
    'what composite streams keep from one computation to the next, such as what they last used';

-- A timestamp that JavaScript's numbers do not hold exactly is a text of its digits there.
INSERT INTO states (stream_id, tenant_id, state)
SELECT stream_id, tenant_id, convert_to(
       (SELECT coalesce(json_object_agg(used.key, CASE WHEN used.value::numeric > 9007199254740991
                                                       THEN to_json(used.value)
                                                       ELSE used.value::json END), '{}')
          FROM json_each_text(uses) AS used)::text, 'UTF8')
  FROM last_updates
 WHERE uses IS NOT NULL;

DROP TABLE last_updates;

COMMENT ON COLUMN streams.stored_as IS
    'stream_id of its updates, state, verdicts and usage; subscriptions have its id';
