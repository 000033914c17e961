-- Tenants that an operator deletes: nobody is let in from then on, and all of theirs goes, piece
-- by piece (api/fleets/departures.py). The last to go is the tenant's row: it cannot while
-- anything refers to it.

ALTER TABLE tenants ADD COLUMN deleted_at timestamptz;
COMMENT ON COLUMN tenants.deleted_at IS
    'when an operator deleted it; the row goes when nothing of the tenant is left';

CREATE POLICY servioticy_platform_update ON tenants FOR UPDATE TO servioticy_platform USING (true);
CREATE POLICY servioticy_platform_delete ON tenants FOR DELETE TO servioticy_platform USING (true);
CREATE POLICY servioticy_platform_delete ON audit_counts FOR DELETE TO servioticy_platform
 USING (true);
CREATE POLICY servioticy_platform_delete ON membership_marks FOR DELETE TO servioticy_platform
 USING (true);
GRANT UPDATE (deleted_at), DELETE ON tenants TO servioticy_platform;
GRANT DELETE ON audit_counts, membership_marks TO servioticy_platform;
GRANT SELECT ON purge, superseded, pending_changes TO servioticy_api;
