"""What a back-up has of the platform, and what it has not and why: every table, every topic.

Who adds one says here what becomes of it (tests/integration/test_backup_contents.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a back-up has, with all its rows of one moment.

    `without` are columns that a restore fills by itself. `counted`: it has offsets of the log,
    which count from stored progress in a back-up, each from that of its own partition; the
    statement of that name in backup.sql reads it so.
    """

    name: str
    counted: str | None = None
    without: frozenset[str] = frozenset()


TABLES = (
    Table("tenants"),
    Table("service_objects"),
    Table("tokens"),
    Table("members"),
    Table("operators"),
    Table("operator_versions"),
    Table("operator_grants"),
    Table("quotas"),
    Table("definitions"),
    Table("streams"),
    Table("grants"),
    Table("ended_grants"),
    Table("graph_edges"),
    Table("pending_changes"),
    Table("inputs_from_outside", "copy_inputs_from_outside"),
    Table("outside_readers"),
    Table("marks", "copy_marks"),
    Table("crossings", "copy_crossings"),
    Table("listings"),
    Table("aspects"),
    Table("templates"),
    Table("template_versions"),
    Table("template_objects"),
    Table("claim_codes"),
    Table("claims"),
    Table("dynamic_groups"),
    Table("membership_marks"),
    Table("group_looks"),
    Table("jobs"),
    Table("job_items"),
    Table("backfills"),
    Table("subscriptions"),
    # Offsets of both topics are in cursors: servioticy/backup/numbering.py.
    Table("cursors"),
    Table("dead_deliveries"),
    Table("callback_tests"),
    # Delivery looks for actuations by the transaction that made them: it is the restore's.
    Table("actuations", without=frozenset({"made_in"})),
    Table("acting_streams"),
    Table("actuation_callbacks"),
    Table("stored_updates", "copy_stored_updates"),
    Table("superseded", "copy_superseded"),
    Table("put_off", "copy_put_off"),
    Table("progress", "copy_progress"),
    Table("forwarded", "copy_forwarded"),
    Table("log_losses"),
    Table("states"),
    Table("kept_entries"),
    Table("verdicts"),
    Table("usage"),
    Table("purge"),
    Table("idempotency"),
    Table("workflows"),
    Table("workflow_versions"),
    Table("workflow_files"),
    Table("workflow_looks"),
    Table("atoms", without=frozenset({"taken_by"})),
    # A restore fills tables without their triggers: what these have counted comes along.
    Table("atom_counts"),
    Table("dead_atoms"),
    Table("collected_atoms"),
    Table("workflow_objects"),
    Table("gathered_atoms"),
    Table("workflow_hours"),
    Table("usage_hours"),
    Table("used_amounts"),
    Table("stored_amounts"),
    Table("audit"),
    Table("audit_counts"),
    Table("audit_parts"),
)
"""In the order in which a restore fills them: what others refer to comes first."""

TABLES_LEFT_OUT: Mapping[str, str] = {
    "migrations": "a restore makes the schema by the files themselves; which ones is in the file",
    "log_identity": "a restored platform has another log",
    "updates": "the table above stored_updates: it has no rows of its own",
    "retention": "a setting, which the pipeline notes at its start",
    "backfilled": "a backfill that has not taken its place begins anew",
    "aspect_minutes": "what aspects have measured is a day's, and measured anew",
    "measurements": "what was measured of another platform's steps says nothing of this one",
    "workflow_instances": "none runs on a platform that was just restored",
    "operator_runs": "how programs ran there says nothing of here",
    "console_sessions": "whoever was signed in signs in again",
    "console_sign_ins": "who has let somebody in counts no more: another key signs from then on",
    "console_keys": "made anew: who was about to sign in begins again",
    "searched_streams": "columns for searches are made anew where somebody searches",
    "search_blocks": "as searched_streams",
    "search_columns": "as searched_streams",
}

TOPICS: Mapping[str, str] = {
    "updates": "what is accepted and not yet stored",
    "emitted": "what durable subscriptions still have to get",
}

TOPICS_LEFT_OUT: Mapping[str, str] = {
    "dead-letters": "they name places in a log that a restored platform has not",
}
