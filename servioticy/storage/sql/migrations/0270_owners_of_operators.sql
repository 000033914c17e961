-- Whose programs a document means by OWNER/NAME stands beside it, as names are given again.

ALTER TABLE definitions ADD COLUMN operator_owners json;
COMMENT ON COLUMN definitions.operator_owners IS
    'numbers of the tenants that it meant by OWNER/NAME when it was accepted, by their names; null: '
    'it names programs of its own tenant alone, or none';

-- Of what is there, whoever has the name and had it when the document came. A name that nobody has,
-- or that somebody younger than the document has, was another one's: nobody computes by it. (By a
-- minute: they were dated by two clocks.)
ALTER TABLE definitions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tenants NO FORCE ROW LEVEL SECURITY;
UPDATE definitions
   SET operator_owners = meant.owners
  FROM (SELECT service_object, version, json_object_agg(tenants.name, tenants.id) AS owners
          FROM definitions
         CROSS JOIN LATERAL (
               SELECT DISTINCT ('"' || found[1] || '"')::json #>> '{}' AS name
                 FROM regexp_matches(
                        document::text,
                        '"name":\s*"((?:[^"\\/]|\\["\\])+)/[a-z0-9-]{1,63}"',
                        'g') AS found) AS named
          JOIN tenants ON tenants.name = named.name
           AND deleted_at IS NULL
           AND extract(epoch FROM tenants.created_at) * 1000 <= definitions.created_at + 60000
         WHERE position('"operator"' IN document::text) > 0
         GROUP BY service_object, version) AS meant
 WHERE definitions.service_object = meant.service_object
   AND definitions.version = meant.version;
ALTER TABLE tenants FORCE ROW LEVEL SECURITY;
ALTER TABLE definitions FORCE ROW LEVEL SECURITY;
