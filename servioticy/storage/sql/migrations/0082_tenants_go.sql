-- Tenants that an operator deletes: nobody is let in from then on, and all of theirs goes, piece
-- by piece (api/fleets/departures.py). The last to go is the tenant's row: it cannot while
-- anything refers to it.

ALTER TABLE tenants ADD COLUMN deleted_at timestamptz;
COMMENT ON COLUMN tenants.deleted_at IS
    'when an operator deleted it; the row goes when nothing of the tenant is left';

SELECT for_all_tenants('servioticy_platform', 'UPDATE', '{tenants}');
SELECT for_all_tenants('servioticy_platform', 'DELETE',
    '{tenants, audit_counts, membership_marks}');
GRANT UPDATE (deleted_at), DELETE ON tenants TO servioticy_platform;
GRANT DELETE ON audit_counts, membership_marks TO servioticy_platform;
GRANT SELECT ON purge, superseded, pending_changes TO servioticy_api;
