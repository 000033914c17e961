"""Of each table it is told what bounds its rows: who adds one says it here."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest

from servioticy.domain.quotas import quotas
from servioticy.settings import Settings
from servioticy.storage.database import Database

QUOTA = {
    "tokens": "tokens",  # and those of Service Objects, MOST_OF_ONE each
    "members": "members",
    "aspects": "aspects",
    "operator_versions": "operators",
    "service_objects": "documents",  # deleted ones: OBJECTS_KEPT_DAYS
    "definitions": "document-bytes",
    "streams": "streams",
    "listings": "documents",
    "template_objects": "documents",
    "actuation_callbacks": "documents",
    "acting_streams": "streams",
    "states": "streams",
    "kept_entries": "stored-bytes",
    "usage": "streams",
    "verdicts": "streams",  # a row of each kind
    "searched_streams": "streams",
    "search_blocks": "stored-bytes",
    "search_columns": "stored-bytes",
    "updates": "stored-bytes",
    "stored_updates": "stored-bytes",
    "superseded": "stored-bytes",
    "subscriptions": "subscriptions",
    "cursors": "subscriptions",
    "callback_tests": "subscriptions",
    "put_off": "updates-waiting",
    "atoms": "atoms-waiting",
    "gathered_atoms": "atom-bytes-waiting",
    "workflow_files": "files-known",  # and MAX_FILES of a workflow
    "job_items": "documents",
    "backfilled": "stored-bytes",  # and MOST_MADE rows of a backfill
}
"""The quota that counts them, or what there is one of each."""

CONSTANT = {
    "grants": "api.resources.grants.MOST",
    "ended_grants": "api.background.forgetting.ACCOUNTS_AT_ONCE",  # the last 1,000: 0116
    "graph_edges": "servioticy.domain.documents.limits.MAX_SUBSCRIPTIONS",
    # As the edges of the version in force for the pipeline; they go with their reader, and who
    # reads a Service Object goes with that.
    "inputs_from_outside": "servioticy.domain.documents.limits.MAX_SUBSCRIPTIONS",
    "outside_readers": "servioticy.domain.documents.limits.MAX_SUBSCRIPTIONS",
    "dynamic_groups": "servioticy.domain.documents.limits.MAX_SUBSCRIPTIONS",
    "actuations": "servioticy.domain.actuations.KEPT",
    "idempotency": "api.http.idempotency.MAX_KEYS",
    "dead_deliveries": "servioticy.storage.dead_deliveries.MAX_KEPT",
    "console_sessions": "servioticy.identity.console_sessions.MOST",
    "console_sign_ins": "servioticy.identity.sign_ins.MOST",
    "operators": "api.resources.operators.MAX_NAMES",
    "operator_grants": "api.resources.operators.MAX_GRANTS",
    "templates": "api.resources.templates.MAX_TEMPLATES",
    "template_versions": "api.resources.template_jobs.MAX_VERSIONS",
    "claim_codes": "api.resources.claim_codes.MOST_USES",
    "claims": "api.resources.claim_codes.MOST_USES",
    "workflows": "api.resources.workflows.MAX_WORKFLOWS",
    "workflow_versions": "api.resources.workflows.MAX_VERSIONS",
    "workflow_looks": "api.resources.workflows.MAX_WORKFLOWS",  # one of each
    "dead_atoms": "servioticy.storage.atoms.MAX_DEAD",
    "collected_atoms": "servioticy.storage.atoms.MAX_COLLECTED",
    "jobs": "api.resources.jobs.KEPT",
    "backfills": "api.resources.jobs.KEPT",  # one of a job
}
"""A limit, and where it stands."""

OTHERWISE = {
    "tenants": "an operator makes them",
    "quotas": "an operator gives them, each one of a table of names",
    "audit": "20,000 of a tenant and a kind, and audit_days: 0111",
    "audit_parts": "of a tenant eleven kinds by 42 causers: 0111",
    "audit_counts": "one of a tenant",
    "used_amounts": "one of a tenant",
    "stored_amounts": "one of a tenant",
    "membership_marks": "one of a tenant",
    "group_looks": "one of a tenant",
    "operator_runs": "one of a program that ran on a node within an hour",
    "usage_hours": "a stream and an hour, for usage_days",
    "atom_counts": "eight of a step of a version",
    "workflow_objects": "those of an hour, each of 32 MiB and one less, for two days",
    "workflow_instances": "functions_instances of a machine, and those killed until their end",
    "workflow_hours": "a step and an hour, for usage_days",
    "purge": "one of what was deleted, until that has gone",
    "pending_changes": "until the log has them, which is before the next change",
    "progress": "one of a partition",
    "forwarded": "one of a pair of partitions",
    "marks": "one of a stream of others that is read in a partition, and where it came from",
    "crossings": "until they are where they were sent, which is before much more is taken",
    "log_identity": "one",
    "console_keys": "one",
    "retention": "one row, of a setting",
    "aspect_minutes": "a day of minutes of an aspect: account_watched in accounts.sql",
    "measurements": "postgres_rows of the file of aspects: the oldest go with each that come",
    "log_losses": "an operator accepts them",
    "migrations": "our files",
}
"""What else bounds them."""


@pytest.fixture(scope="module")
def tables(session_dsn: str) -> Iterator[set[str]]:
    database = Database(session_dsn)
    rows = database.rows(
        "SELECT relname FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    )
    yield {name for (name,) in rows}
    database.close()


def test_of_every_table_it_is_told_what_bounds_its_rows(tables: set[str]) -> None:
    assert tables == QUOTA.keys() | CONSTANT.keys() | OTHERWISE.keys()


def test_it_is_told_once(tables: set[str]) -> None:
    assert len(QUOTA) + len(CONSTANT) + len(OTHERWISE) == len(tables)


def test_every_quota_that_is_named_is_one() -> None:
    assert set(QUOTA.values()) <= quotas(Settings()).keys()


@pytest.mark.parametrize("name", sorted(set(CONSTANT.values())))
def test_every_limit_that_is_named_is_one(name: str) -> None:
    module, _, constant = name.rpartition(".")

    limit = getattr(import_module(module), constant)

    assert getattr(limit, "most", limit) > 0
