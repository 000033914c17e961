"""Every table and every topic is in a back-up, or it is said why it is not."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from servioticy.domain.kept import TABLES, TABLES_LEFT_OUT, TOPICS, TOPICS_LEFT_OUT
from servioticy.domain.topics import Topics
from servioticy.storage.database import Database
from servioticy.storage.roles import Role
from servioticy.storage.snapshot import PostgresSnapshot

PLACES = re.compile("offset|cursor|log_partition|from_partition|xid|next_tree")
"""So columns are called, or their types, that may name a place in the log or in this server."""
UNDERSTOOD = {
    # Counted from stored progress by what `copy_NAME` in backup.sql reads.
    *("stored_updates.log_partition", "stored_updates.log_offset"),
    *("superseded.log_partition", "superseded.log_offset"),
    *("put_off.log_partition", "put_off.log_offset"),
    *("crossings.log_partition", "crossings.log_offset"),
    *("progress.log_partition", "progress.next_offset", "progress.emitted_offset"),
    "progress.next_tree",
    # From that of the partition that they are of.
    *("forwarded.from_partition", "forwarded.next_offset"),
    *("marks.from_partition", "marks.log_offset"),
    *(f"inputs_from_outside.{each}_at" for each in ("told", "left_told", "awaits", "arrived")),
    # Renumbered by a restore.
    *("cursors.cursor", "acting_streams.cursor"),
    # Made anew by a restore.
    "actuations.made_in",
    # A partition has the same number in the other log.
    *("purge.log_partition", "marks.log_partition", "outside_readers.log_partition"),
    "kept_entries.log_partition",
    # What an operator accepted once, of a log that is gone.
    *("log_losses.log_partition", "log_losses.stored_offset"),
}


@pytest.fixture(scope="module")
def owner(session_dsn: str) -> Iterator[Database]:
    found = Database(session_dsn)
    yield found
    found.close()


def rows(owner: Database, sql: str) -> list[str]:
    return [name for (name,) in owner.rows(sql)]


def test_every_table_is_in_it_or_it_is_said_why_not(owner: Database) -> None:
    """Who adds one asks what a restore makes of its rows, and says so in `kept`."""
    found = rows(
        owner,
        "SELECT relname FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')",
    )
    kept = [each.name for each in TABLES]

    assert sorted(found) == sorted([*kept, *TABLES_LEFT_OUT])
    assert all(TABLES_LEFT_OUT.values())


def test_every_topic_is_in_it_or_it_is_said_why_not() -> None:
    assert sorted(Topics().all) == sorted([*TOPICS, *TOPICS_LEFT_OUT])
    assert all({**TOPICS, **TOPICS_LEFT_OUT}.values())


def test_every_column_that_may_name_a_place_is_understood(owner: Database) -> None:
    """An offset of the log that is gone, taken for one of the new log, would be a lost update."""
    columns = owner.rows(
        "SELECT relname, attname, format_type(atttypid, NULL) FROM pg_attribute"
        " JOIN pg_class ON pg_class.oid = attrelid"
        " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        "   AND attnum > 0 AND NOT attisdropped"
    )
    kept = {each.name for each in TABLES}
    named = {(table, column) for table, column, _ in columns}
    found = {
        f"{table}.{column}"
        for table, column, kind in columns
        if table in kept
        and (
            PLACES.search(f"{column} {kind}")
            # A partition, and an offset of it.
            or (column.endswith("_at") and (table, column[:-2] + "in") in named)
        )
    }

    assert found == UNDERSTOOD


def test_what_others_refer_to_comes_first(owner: Database) -> None:
    order = {each.name: at for at, each in enumerate(TABLES)}
    references = owner.rows(
        "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint"
        " WHERE contype = 'f' AND conrelid <> confrelid"
    )

    for table, referred in references:
        if table in order:
            assert order[referred] < order[table], f"{table} refers to {referred}"


def test_all_rows_of_all_tables_are_seen_and_none_is_changed(session_dsn: str) -> None:
    """By its own role: so what is copied is whole, whoever owns the tables."""
    database = Database(session_dsn, role=Role.BACKUP)
    snapshot = PostgresSnapshot(database)
    rights = database.rows(
        "SELECT relname, has_table_privilege('servioticy_backup', oid, 'SELECT'),"
        " has_table_privilege('servioticy_backup', oid, 'INSERT, UPDATE, DELETE, TRUNCATE')"
        " FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    )
    for table in TABLES:
        assert snapshot.columns(table)
    sequences = snapshot.sequences()
    database.close()

    assert {name for name, reads, _ in rights if not reads} == set()
    assert {name for name, _, writes in rights if writes} == set()
    assert {"pending_changes_id_seq", "cursor_changes", "streams_id_seq"} <= set(sequences)
