"""Of each trigger it is told what it may cost and whom it holds up: who adds one says it here.

Whoever changes Service Objects holds the right to change them, over all tenants, until the
transaction ends: what a trigger of theirs does is what others wait for.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servioticy.storage.database import Database

ENTRIES = "an entry for each row, in counts of its own tenant; what is too many goes with it"
TOLD = "a word to delivery"
COST = {
    "service_objects.audit_service_object": ENTRIES,
    "service_objects.keep_activated": "one row",
    "service_objects.leave_template": "one row",
    "service_objects.list_service_object": "16 KiB of a document; of others it is done already",
    "service_objects.mark_membership": "a document; a mark of its own tenant",
    "service_objects.note_sources": "a number of each subscription to it or to groups with it",
    "service_objects.tell_readers": TOLD,
    "tokens.audit_made_tokens": ENTRIES,
    "tokens.audit_rotated_tokens": ENTRIES,
    "tokens.audit_revoked_tokens": ENTRIES,
    "tokens.tell_token": TOLD,
    "console_sessions.tell_console_session": TOLD,
    "members.audit_member": ENTRIES,
    "members.tell_member": TOLD,
    "claim_codes.audit_claim_code": ENTRIES,
    "subscriptions.audit_subscription": ENTRIES,
    "templates.audit_template": ENTRIES,
    "jobs.audit_job": ENTRIES,
    "operator_versions.audit_operator": ENTRIES,
    "operator_grants.audit_operator_grant": ENTRIES,
    "workflows.audit_workflow": ENTRIES,
    "aspects.audit_aspect": ENTRIES,
    "actuation_callbacks.audit_actuation_secret": ENTRIES,
    "pending_changes.audit_erasure": ENTRIES,
    "pending_changes.audit_forgetting": ENTRIES,
    "grants.audit_grant": "two entries, of both sides, in their order",
    "grants.audit_use_of_grant": "the same, once a day",
    "ended_grants.audit_use_of_grant": "the same, once a day",
    "grants.audit_ended_grants": "the same for all that end together, at most 1,000",
    "grants.keep_ended_grants": "a row each, of givers; what others work on is not waited for",
    "grants.mark_granted": "as note_sources",
    "atoms.count_atoms_that_come": "a row of each queue that the statement puts atoms into",
    "atoms.count_atoms_that_go": "a row of each queue that the statement takes atoms from",
}


@pytest.fixture(scope="module")
def owner(session_dsn: str) -> Iterator[Database]:
    found = Database(session_dsn)
    yield found
    found.close()


def test_of_every_trigger_it_is_told_what_it_may_cost(owner: Database) -> None:
    rows = owner.rows(
        "SELECT tgrelid::regclass || '.' || tgname FROM pg_trigger WHERE NOT tgisinternal"
    )

    assert {name for (name,) in rows} == COST.keys()


@pytest.mark.parametrize(
    ("fields", "is_searched"),
    [
        ('{"k":1,"long":"' + "x" * (65_536 - 17) + '"}', True),
        ('{"k":1,"long":"' + "x" * (65_536 - 16) + '"}', False),
    ],
)
def test_of_long_fields_nothing_is_derived(
    owner: Database, fields: str, is_searched: bool
) -> None:
    """750 KB of them made everybody's next change wait for most of a second."""
    assert len(fields) == 65_536 + (not is_searched)
    with owner.transaction():
        owner.rows("INSERT INTO tenants (name) VALUES ('listed')")
        owner.rows(
            "INSERT INTO service_objects (id, tenant_id, public, created_at, updated_at, version,"
            " component, route_partition, owner_partition, custom_fields)"
            " SELECT 'listed', id, false, 0, 0, 1, 'listed', 0, 0, %(fields)s"
            "   FROM tenants WHERE name = 'listed'",
            {"fields": fields},
        )
        owner.rows(
            "INSERT INTO definitions (service_object, version, tenant_id, document, created_at)"
            " SELECT 'listed', 1, id, '{}', 0 FROM tenants WHERE name = 'listed'"
        )
        owner.rows("SET CONSTRAINTS ALL IMMEDIATE")
        listed = owner.rows(
            "SELECT 'k=1' = ANY(fields) FROM listings WHERE service_object = 'listed'"
        )
        owner.rows("DELETE FROM service_objects WHERE id = 'listed'")
        for table in ("audit", "audit_counts", "audit_parts"):
            its = "(SELECT id FROM tenants WHERE name = 'listed')"
            owner.rows(f"DELETE FROM {table} WHERE tenant_id = {its}")
        owner.rows("DELETE FROM tenants WHERE name = 'listed'")

    assert listed == [(is_searched,)]
