"""Two releases beside each other: what a release may change, of the schema and of the log."""

from __future__ import annotations

import re
from importlib import resources
from typing import get_args

import msgspec
import next_release
import pytest
from expanding import CONTRACTS, wrong

from servioticy.domain import records
from servioticy.domain.records import EmittedRecord, read_emitted, read_record

SQL = resources.files("servioticy.storage") / "sql"
FIRST_HELD = "0381"
"""Those before it came with releases that were not promised to stand beside another one."""
INSERT = re.compile(r"\bINSERT INTO\s+[\w.\"{}]+(?:\s+AS\s+\w+)?\s*(\S{0,8})")


def test_migrations_of_this_release_only_expand() -> None:
    held = [each for each in (SQL / "migrations").iterdir() if each.name >= FIRST_HELD]

    assert {each.name: wrong(each.read_text("utf-8")) for each in held} == {
        each.name: [] for each in held
    }


@pytest.mark.parametrize(
    "sql",
    [
        next_release.SQL,
        "ALTER TABLE a ADD COLUMN b text;",
        "ALTER TABLE a ADD COLUMN b text NOT NULL DEFAULT '', ADD COLUMN c int;",
        "CREATE TABLE a (b int NOT NULL CHECK (b > 0)); CREATE UNIQUE INDEX c ON a (b);",
        "CREATE INDEX a ON b (c);",
        "-- DROP TABLE a\nCOMMENT ON TABLE a IS 'it is no DROP TABLE b';",
        "ALTER TABLE a ALTER COLUMN b DROP NOT NULL;",
        f"{CONTRACTS} nobody reads it since 0.2\nDROP TABLE a;",
    ],
)
def test_what_expands_is_let_pass(sql: str) -> None:
    assert wrong(sql) == []


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE a;",
        "ALTER TABLE a DROP COLUMN b;",
        "ALTER TABLE a RENAME COLUMN b TO c;",
        "ALTER TABLE a ALTER COLUMN b TYPE bigint;",
        "ALTER TABLE a ALTER b SET DATA TYPE bigint;",
        "ALTER TABLE a ALTER COLUMN b SET NOT NULL;",
        "ALTER TABLE a ADD COLUMN b text NOT NULL;",
        "ALTER TABLE a ADD CONSTRAINT c CHECK (b > 0);",
        "ALTER TABLE a ADD UNIQUE (b);",
        "CREATE UNIQUE INDEX c ON a (b);",
        "REVOKE SELECT ON a FROM b;",
        "TRUNCATE a;",
        f"{CONTRACTS}\nDROP TABLE a;",
        "DROP POLICY a ON b;",
    ],
)
def test_what_the_release_before_would_not_survive_is_refused(sql: str) -> None:
    assert wrong(sql)


def test_statements_name_the_columns_that_they_fill() -> None:
    """One that a later release has added would else get the value of another."""
    for file in SQL.iterdir():
        if file.name.endswith(".sql") and file.name != "schema.sql":
            text = re.sub(r"--.*", "", file.read_text("utf-8"))
            assert [each for each in INSERT.findall(text) if not each.startswith("(")] == []
            assert not re.search(r"\bCOPY\s+\w+\s+FROM", text)


def test_records_of_a_later_release_are_read_by_what_is_known_of_them() -> None:
    kinds = [each for each in get_args(records.LogRecord) if isinstance(each, type)]
    assert len(kinds) > 10

    for each in (*kinds, EmittedRecord, records.AnsweredEvent, records.BorderUpdate):
        assert not each.__struct_config__.forbid_unknown_fields
    update = b'{"kind":"update","service_object":"a","stream":"b","timestamp":1,"update":{}%s}'
    emitted = (
        b'{"service_object":"a","stream":"b","tenant":1,"version":1,"timestamp":1,"update":{}%s}'
    )
    more = b',"next_release":["next"]'
    assert read_record(update % more) == read_record(update % b"")
    assert read_emitted(emitted % more) == read_emitted(emitted % b"")


def test_what_the_next_release_says_more_is_no_field_of_this_one() -> None:
    fields = {each.name for each in msgspec.structs.fields(EmittedRecord)}

    assert next_release.UNKNOWN not in fields
