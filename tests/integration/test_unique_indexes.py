"""No tenant's text is in the way of another's: whatever is unique is so within a tenant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servioticy.storage.database import Database

OWN = {
    *("claims.code", "cursors.subscription_id", "callback_tests.subscription_id"),
    *("dead_deliveries.subscription_id", "definitions.service_object", "streams.service_object"),
    *("dynamic_groups.service_object", "graph_edges.reader", "job_items.job"),
    *(
        "backfills.job",
        "backfilled.job",
        "inputs_from_outside.reader",
        "outside_readers.reader",
        "marks.source",
    ),
    *("listings.service_object", "purge.service_object", "template_objects.service_object"),
    *("actuation_callbacks.service_object", "template_versions.template"),
    *("workflow_versions.workflow", "workflow_hours.workflow"),
    *("workflow_files.workflow", "workflow_looks.workflow", "workflow_objects.workflow"),
    *("searched_streams.stream_id", "search_blocks.stream_id", "search_columns.block_id"),
    *(
        "states.stream_id",
        "kept_entries.stream_id",
        "verdicts.stream_id",
        "usage.stream_id",
        "acting_streams.stream_id",
    ),
    *("updates.stream_id", "stored_updates.stream_id"),
}
"""Columns with the id, made by the platform, of something that belongs to the row's own tenant."""

MADE_BY_US = {
    "tenants.id": "counted",
    "tenants.public_id": "of chance",
    "tokens.digest": "of chance",
    "tokens.id": "of chance",
    "members.id": "of chance",
    "console_sessions.digest": "of a cookie that is of chance",
    "console_sign_ins.digest": "of a cookie that is of chance",
    "console_keys.one_row": "there is one row",
    "service_objects.id": "of chance",
    "subscriptions.id": "of chance",
    "actuations.id": "of chance",
    "templates.id": "of chance",
    "workflows.id": "of chance",
    "aspects.id": "of chance",
    "measurements.id": "counted",
    "atoms.id": "counted",
    "dead_atoms.id": "counted",
    "collected_atoms.id": "counted",
    "gathered_atoms.id": "counted",
    "workflow_instances.id": "counted",
    "jobs.id": "of chance",
    "grants.id": "of chance",
    "ended_grants.id": "of chance",
    "claim_codes.id": "of chance",
    "claim_codes.digest": "of a code that is of chance",
    "streams.id": "counted",
    "streams.stored_as": "counted",
    "purge.id": "counted",
    "purge.stored_as": "counted",
    "pending_changes.id": "counted",
    "search_blocks.id": "counted",
    "dead_deliveries.id": "counted",
    "progress.log_partition": "of the log",
    "forwarded.to_partition, forwarded.from_partition": "of the log",
    "put_off.log_partition, put_off.log_offset, put_off.tree": "of the log",
    "superseded.log_partition, superseded.log_offset, superseded.tree, superseded.log_position": (
        "of the log"
    ),
    "crossings.log_partition, crossings.log_offset, crossings.tree, crossings.number": (
        "of the log"
    ),
    "log_identity.one_row": "there is one row",
    "retention.is_it": "there is one row",
    "log_losses.id": "counted",
    "migrations.name": "of our files",
}
"""Keys that nobody chooses, and where they come from."""

EXCEPTIONS = {
    "tenants.name": "operators name tenants, and tell them who is who by it",
}
"""Texts that somebody chooses and that are unique over all tenants, and why."""


@pytest.fixture(scope="module")
def owner(session_dsn: str) -> Iterator[Database]:
    found = Database(session_dsn)
    yield found
    found.close()


def keys(owner: Database) -> dict[str, list[str]]:
    """The columns of each unique index, as the catalogue has them."""
    rows = owner.rows(
        "SELECT indexrelid::regclass::text, indrelid::regclass::text,"
        "       array_agg(pg_get_indexdef(indexrelid, place, true) ORDER BY place)"
        "  FROM pg_index"
        " CROSS JOIN LATERAL generate_series(1, indnkeyatts) AS place"
        "  JOIN pg_class ON pg_class.oid = indrelid"
        " WHERE indisunique AND relnamespace = 'public'::regnamespace"
        " GROUP BY 1, 2"
    )
    assert len(rows) > 50
    return {index: [f"{table}.{column}" for column in columns] for index, table, columns in rows}


def reason(columns: list[str]) -> str | None:
    """Why such an index is in no other tenant's way; None: it may be."""
    whole = ", ".join(columns)
    if any(each.endswith(".tenant_id") or each in OWN for each in columns):
        return "within a tenant"
    return MADE_BY_US.get(whole) or EXCEPTIONS.get(whole)


def test_whatever_is_unique_is_so_within_a_tenant_or_made_by_us(owner: Database) -> None:
    """Else who comes first keeps others out, and tells them that it is there."""
    in_the_way = {index for index, columns in keys(owner).items() if reason(columns) is None}

    assert in_the_way == set()


def test_every_exception_is_there(owner: Database) -> None:
    """A list that nobody needs any more would let the next one pass unseen."""
    found = list(keys(owner).values())
    named = {", ".join(each) for each in found} | {each for columns in found for each in columns}

    assert set(OWN) | MADE_BY_US.keys() | EXCEPTIONS.keys() <= named


def test_what_an_application_chose_would_be_found(owner: Database) -> None:
    assert reason(["subscriptions.stream_id", "subscriptions.destination"]) is None
