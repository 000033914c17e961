"""A table as a sink: rows by their key, and what becomes of atoms that are none."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from workflow_builders import a_document, a_queue, a_workflow, an_atom

from functions import tables as sinks
from functions.steps import Result, Task
from functions.tables import AWAY_MS, NO_COLUMN, REFUSED_MS, Tables
from servioticy.domain.workflows.tables import databases
from servioticy.embedded import tcp_ports
from servioticy.settings import changed, load, to_environment
from servioticy.storage import outside_tables
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.database import Database
from servioticy.storage.outside_tables import PostgresOutsideTables

KEY = ("device", "at")
TABLE = (
    "CREATE SCHEMA me; CREATE TABLE me.readings (device text, at bigint, celsius float,"
    " seen timestamptz DEFAULT '2026-11-27Z', tags jsonb, CHECK (celsius > -274),"
    " PRIMARY KEY (device, at))"
)


def url(dsn: str) -> str:
    return f"{dsn}/{{tenant}}?sslmode=disable"


class World:
    """The sink on a database of its own."""

    def __init__(self, dsn: str) -> None:
        self.owner = Database(dsn)
        self.owner.rows(TABLE)
        self.step = self.on(url(dsn))

    def on(self, place: str) -> Tables:
        return Tables(databases({"dw": place}), lambda _: "me", PostgresOutsideTables())

    def work(
        self,
        *atoms: Any,
        table: str = "readings",
        key: Sequence[str] = KEY,
        step: Tables | None = None,
    ) -> Result:
        sink = {"table": {"database": "dw", "table": table, "key": [*key]}}
        task = Task(a_queue(step=1), a_workflow("clean", sink=sink), "")
        given = [an_atom(n, body=orjson.dumps(each)) for n, each in enumerate(atoms)]
        return (step or self.step).work(task, given)

    def rows(self) -> list[Any]:
        text = "SELECT device, at, celsius, tags FROM me.readings ORDER BY device, at"
        return self.owner.rows(text)


@pytest.fixture
def world(empty_dsn: str) -> Iterator[World]:
    found = World(empty_dsn)
    yield found
    found.owner.close()


def a_reading(device: str = "a", at: Any = 1, **more: Any) -> dict[str, Any]:
    return {"device": device, "at": at, **more}


def test_an_atom_is_a_row_and_one_that_comes_twice_overwrites_itself(world: World) -> None:
    """What it does not name is as the table has it, or as it was."""
    first = a_reading(celsius=2.5, tags={"x": [1]})
    assert world.work(first, a_reading("b", celsius=1)).done == {0: (), 1: ()}
    assert world.work(first, a_reading("b")).done == {0: (), 1: ()}
    assert world.work(a_reading(celsius=3)).done == {0: ()}

    assert world.rows() == [("a", 1, 3.0, {"x": [1]}), ("b", 1, 1.0, None)]
    assert world.owner.rows("SELECT count(seen) FROM me.readings") == [(2,)]


def test_of_the_same_key_among_those_that_were_taken_the_last_one_stays(world: World) -> None:
    assert world.work(*[a_reading(celsius=n) for n in range(3)]).done.keys() == {0, 1, 2}

    assert world.rows() == [("a", 1, 2.0, None)]


def test_what_is_no_row_spoils_no_other(world: World) -> None:
    result = world.work(
        a_reading("good"),
        a_reading(at="soon"),
        a_reading("good", at=2),
        {"device": "a"},
        a_reading(**{"x" * 64: 1}),
        a_reading(celsius=-300),
        a_reading(color="red"),
        a_reading("nul\0"),
    )

    assert result.done.keys() == {0, 2}
    told = {id_: (each.reason, each.is_hopeless) for id_, each in result.failed.items()}
    assert told == {
        1: ('the table: invalid input syntax for type bigint: "soon"', True),
        3: ("it has no 'at', which is of the key", True),
        4: (NO_COLUMN, True),
        5: (told[5][0], True),
        6: ('the table: column "color" of relation "readings" does not exist', False),
        7: ("the table: unsupported Unicode escape sequence", True),
    }
    assert "readings_celsius_check" in told[5][0]
    assert [row[:2] for row in world.rows()] == [("good", 1), ("good", 2)]


def test_a_table_that_is_not_there_may_come(world: World) -> None:
    for table, key in (("gone", KEY), ("readings", ["celsius"])):
        result = world.work(a_reading(celsius=1), table=table, key=key)
        ((reason, is_hopeless),) = result.failed.values()
        assert "does not exist" in reason or "no unique" in reason
        assert not is_hopeless


def test_without_a_key_each_atom_is_a_row_whatever_columns_are_called(world: World) -> None:
    world.owner.rows('CREATE TABLE me.free ("a""b %s" int)')

    assert world.work(*[{'a"b %s': 7}] * 2, table="free", key=()).done.keys() == {0, 1}
    assert world.work({}, table="free", key=()).failed[0].reason == "it has no members"

    assert world.owner.rows("SELECT * FROM me.free") == [(7,), (7,)]


def test_a_database_that_is_not_the_tenants_is_waited_for(world: World, empty_dsn: str) -> None:
    """Its operator has taken it away since the document came."""
    theirs = world.on(f"{empty_dsn}/me?tenants=other&sslmode=disable")

    assert world.work(a_reading(), step=theirs) == Result(later={0: REFUSED_MS})


def test_a_database_that_is_away_is_waited_for(world: World) -> None:
    away = world.on(f"postgres://a:b@127.0.0.1:{tcp_ports.free()}/dw/{{tenant}}")

    result = world.work({}, a_reading(), a_reading(celsius=1), step=away)

    assert result.failed.keys() == {0}
    assert result.later == {1: AWAY_MS, 2: AWAY_MS}


@pytest.mark.parametrize("ends", ["SECONDS", "ANSWER_SECONDS"])
def test_whoever_holds_a_table_up_has_that_only(
    world: World, empty_dsn: str, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """The server ends what waits, and where it does not we do: `0` lets it wait without end."""
    monkeypatch.setattr(outside_tables, "SECONDS", 0.0)
    monkeypatch.setattr(outside_tables, "ANSWER_SECONDS", 1_000.0)
    monkeypatch.setattr(outside_tables, ends, 0.2)
    results: list[Result] = []
    other = Database(empty_dsn)
    with other.transaction():
        other.rows("LOCK TABLE me.readings")
        thread = threading.Thread(
            target=lambda: results.append(world.work(a_reading())), daemon=True
        )
        thread.start()
        thread.join(60)
        assert results == [Result(later={0: AWAY_MS})]
    other.close()


def test_others_have_the_place_after_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "WRITING_SECONDS", 0.0)

    assert world.work(a_reading(), a_reading("b")) == Result(later={0: 0, 1: 0})


def test_atoms_go_through_a_workflow_into_a_table(dsn: str, empty_dsn: str, world: World) -> None:
    """By the program that works, with what an operator's setting says."""
    document = a_document(
        sink={"table": {"database": "dw", "table": "readings", "key": [*KEY]}},
    )
    owner = Database(dsn)
    owner.rows(
        "INSERT INTO tenants (id, name, public_id) OVERRIDING SYSTEM VALUE VALUES (1, 'a', 'me');"
        "INSERT INTO workflows (id, tenant_id, created_at, updated_at) VALUES ('w', 1, 0, 0);"
        "INSERT INTO workflow_versions (workflow, version, tenant_id, content, created_at)"
        " VALUES ('w', 1, 1, %(text)s, 0)",
        {"text": orjson.dumps(document).decode()},
    )
    body = orjson.dumps(a_reading(celsius=4))
    PostgresAtoms(owner).put(1, "w", 1, a_workflow(**document), [(body, 0)], 0)
    settings = changed(
        load(),
        dsn=dsn,
        functions_metrics_port=0,
        functions_idle_seconds=0.0,
        functions_databases={"dw": url(empty_dsn)},
    )
    subprocess.run(
        [sys.executable, "-m", "functions.working"],
        env={**os.environ, **to_environment(settings)},
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=240,
    )

    assert owner.rows("SELECT 1 FROM atoms") == []
    owner.close()
    assert world.rows() == [("a", 1, 4.0, None)]
