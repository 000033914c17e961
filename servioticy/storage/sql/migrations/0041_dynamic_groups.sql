-- Groups whose members are found by conditions. Triggers keep in step which there are and whose
-- may be concerned by a change, whoever writes; who belongs is found out by the follower.

CREATE TABLE dynamic_groups (
    service_object text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    name text NOT NULL,
    tenant_id bigint NOT NULL,
    others boolean NOT NULL,
    PRIMARY KEY (service_object, name)
);
COMMENT ON COLUMN dynamic_groups.others IS
    'whether public Service Objects of other tenants may belong, too';
CREATE INDEX dynamic_groups_by_tenant ON dynamic_groups (tenant_id);
CREATE INDEX dynamic_groups_with_others ON dynamic_groups (others) WHERE others;

CREATE TABLE membership_marks (
    tenant_id bigint PRIMARY KEY,
    changes bigint NOT NULL DEFAULT 1
);
COMMENT ON TABLE membership_marks IS
    'whose Service Objects have changed since the follower looked at dynamic groups';
COMMENT ON COLUMN membership_marks.changes IS
    'counted, so that what changes while the follower looks is not forgotten';

ALTER TABLE definitions ADD COLUMN automatic boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN definitions.automatic IS
    'made by the follower of dynamic groups: old ones go';

CREATE FUNCTION mark_membership() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM dynamic_groups
     WHERE service_object = NEW.id
       AND tenant_id = NEW.tenant_id;
    INSERT INTO dynamic_groups (service_object, name, tenant_id, others)
    SELECT NEW.id, name, NEW.tenant_id, coalesce(conditions ->> 'public' = 'true', false)
      FROM definitions
           -- Wherever there is a NUL in it, Postgres would look into none of it.
     CROSS JOIN LATERAL (
           SELECT replace(document::text, '\u0000', '\u0001')::json -> 'groups' AS groups) AS read
     CROSS JOIN LATERAL json_each(object_or_empty(groups)) AS named (name, content)
     CROSS JOIN LATERAL (
           SELECT object_or_empty(named.content) -> 'where' AS conditions) AS query
     WHERE service_object = NEW.id
       AND definitions.tenant_id = NEW.tenant_id
       AND version = NEW.version
       AND json_typeof(conditions) = 'object'
       AND NEW.deleted_at IS NULL
        ON CONFLICT DO NOTHING;
    IF EXISTS (SELECT FROM dynamic_groups WHERE tenant_id = NEW.tenant_id OR others) THEN
        INSERT INTO membership_marks (tenant_id)
        VALUES (NEW.tenant_id)
            ON CONFLICT (tenant_id) DO UPDATE
           SET changes = membership_marks.changes + 1;
    END IF;
    RETURN NULL;
END $$;

-- Deferred, as what is looked at is written after the row.
CREATE CONSTRAINT TRIGGER mark_membership
 AFTER INSERT OR UPDATE OF version, custom_fields, public, deleted_at ON service_objects
 DEFERRABLE INITIALLY DEFERRED
   FOR EACH ROW EXECUTE FUNCTION mark_membership();

CREATE FUNCTION keep_activated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE definitions
       SET automatic = false
     WHERE service_object = NEW.id
       AND tenant_id = NEW.tenant_id
       AND version = NEW.version;
    RETURN NULL;
END $$;

-- A version that somebody went back to is not pruned any more: the log names it again.
CREATE TRIGGER keep_activated
 AFTER UPDATE OF version ON service_objects
   FOR EACH ROW WHEN (NEW.version < NEW.newest_version) EXECUTE FUNCTION keep_activated();
