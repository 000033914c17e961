-- Looks at dynamic groups go on where they stopped, tenants in turn.

CREATE TABLE group_looks (
    tenant_id bigint PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    after text NOT NULL DEFAULT '',
    again boolean NOT NULL DEFAULT false,
    looked_at timestamptz NOT NULL DEFAULT '-infinity'
);
COMMENT ON TABLE group_looks IS 'whose dynamic groups are still to be looked at by the follower';
COMMENT ON COLUMN group_looks.after IS 'the last Service Object whose groups it has looked at';
COMMENT ON COLUMN group_looks.again IS 'something has changed since it began: it begins once more';
COMMENT ON COLUMN group_looks.looked_at IS 'its last turn: the next one is that of another tenant';

COMMENT ON COLUMN membership_marks.changes IS
    'counted, so that a mark which is just taken away is waited for and made anew';

DROP INDEX dynamic_groups_by_tenant;
CREATE INDEX dynamic_groups_by_tenant ON dynamic_groups (tenant_id, service_object);

SELECT force_row_level_security('group_looks');
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{group_looks}');
SELECT for_all_tenants('servioticy_platform', 'INSERT', '{group_looks}');
SELECT for_all_tenants('servioticy_platform', 'UPDATE', '{group_looks}');
GRANT SELECT, INSERT, UPDATE ON group_looks TO servioticy_platform;
GRANT SELECT, UPDATE, DELETE ON group_looks TO servioticy_api;
