"""Parquet as a sink: what is gathered, sealed and written, whoever is killed over it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pandas
import pytest
from pyarrow import parquet
from waiting import until
from workflow_builders import a_document, a_queue, a_workflow

from functions.files import table_process
from functions.files.objects import AWAY_MS, Objects, Writer
from functions.files.store import FileRefused, StoreAway, StoreRefuses
from functions.steps import Result, Task
from servioticy.domain.workflows.objects import HOUR_MS, LATE_MS, Object
from servioticy.domain.workflows.stores import stores
from servioticy.storage import gathered as storage
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.database import Database
from servioticy.storage.gathered import PostgresGathered
from servioticy.storage.roles import Role
from servioticy.turns import Turns

SINK: dict[str, Any] = {"parquet": {"store": "lake", "prefix": "out/"}}
READ = a_workflow("clean", sink=SINK)
TO_SINK, TO_WRITE = a_queue(step=1), a_queue(step=2)
HOUR = 1_764_216_000_000
"""2025-11-27T04:00:00Z"""


@pytest.fixture
def owner(dsn: str) -> Iterator[Database]:
    database = Database(dsn)
    database.rows(
        "INSERT INTO tenants (id, name, public_id) OVERRIDING SYSTEM VALUE VALUES (1, 'a', 'me');"
        "INSERT INTO workflows (id, tenant_id, created_at, updated_at) VALUES ('w', 1, 0, 0);"
        "INSERT INTO workflow_versions (workflow, version, tenant_id, content, created_at)"
        " VALUES ('w', 1, 1, %(text)s, 0)",
        {"text": orjson.dumps(a_document("clean", sink=SINK)).decode()},
    )
    yield database
    database.close()


class World:
    """The sink's two steps on this Postgres, and a folder."""

    def __init__(self, dsn: str, folder: Path, owner: Database) -> None:
        self.folder = folder
        self.now = HOUR + 1_000
        self.owner = owner
        self.database = Database(dsn, role=Role.DELIVERY)
        self.atoms = PostgresAtoms(self.database)
        self.gathered = PostgresGathered(self.database)
        self.step = Objects(
            self.gathered,
            stores({"lake": f"file://{folder}?tenants=me&write=yes"}),
            self.atoms.public_id,
            clock=lambda: self.now / 1_000,
        )

    def put(self, *bodies: bytes) -> None:
        """Atoms come to the sink."""
        for body in bodies:
            self.owner.rows(
                "INSERT INTO atoms (tenant_id, workflow, version, step, visible_at, entered_at,"
                " body) VALUES (1, 'w', 1, 1, 0, 0, %(body)s)",
                {"body": body.decode()},
            )

    def work(self, step: int, instance: int = 1) -> Result | None:
        """Take what may be taken at a step; None: nothing may."""
        queue = a_queue(step=step)
        taken = self.atoms.take(queue, instance, 100, self.now, self.now + 90_000)
        return self.step.work(Task(queue, READ, "", instance), taken) if taken else None

    def end_hour(self) -> None:
        self.now = self.now // HOUR_MS * HOUR_MS + HOUR_MS + LATE_MS

    def objects(self) -> dict[str, list[Any]]:
        """What is in the store, by name."""
        return {
            str(each.relative_to(self.folder)): parquet.read_table(each).to_pylist()
            for each in sorted(self.folder.rglob("*.parquet"))
        }


@pytest.fixture
def world(dsn: str, owner: Database, tmp_path: Path) -> Iterator[World]:
    found = World(dsn, tmp_path, owner)
    yield found
    found.step.close()
    found.database.close()


FIRST = "out/date=2025-11-27/hour=04/w-1-0.parquet"


def test_atoms_of_an_hour_are_one_object_that_everybody_reads(world: World) -> None:
    world.put(b'{"n":1,"t":"a"}', b'{"n":2.5}')
    result = world.work(1)
    assert result is not None
    assert result.settled == 2
    assert world.work(2) is None
    world.put(b'{"n":3,"o":{"x":[1]}}')
    world.work(1)
    assert world.objects() == {}

    world.end_hour()
    result = world.work(2)
    assert result is not None
    assert result._replace(processor_us=0) == Result()
    assert result.processor_us > 0

    rows = [
        {"n": 1.0, "t": "a", "o": None},
        {"n": 2.5, "t": None, "o": None},
        {"n": 3.0, "t": None, "o": {"x": [1]}},
    ]
    assert world.objects() == {FIRST: rows}
    path = world.folder / FIRST
    assert pandas.read_parquet(path)["n"].sum() == 6.5
    partitioned = f"{world.folder}/out/**/*.parquet"
    found = duckdb.sql(
        f"SELECT sum(n), max(hour) FROM read_parquet('{partitioned}', hive_partitioning = true)"
    ).fetchall()
    assert [(total, str(hour).zfill(2)) for total, hour in found] == [(6.5, "04")]
    for table in ("atoms", "gathered_atoms"):
        assert world.owner.rows(f"SELECT 1 FROM {table}") == []
    assert world.atoms.held(1) == (0, 0)


def test_who_is_killed_before_he_has_said_so_has_written_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what comes meanwhile is another object's, though it is of the same hour."""
    world.put(b'{"n":1}', b'{"n":2}')
    world.work(1)
    world.end_hour()
    with monkeypatch.context() as patch:
        patch.setattr(PostgresGathered, "written", _killed)
        with pytest.raises(KeyboardInterrupt):
            world.work(2)
    before = (world.folder / FIRST).read_bytes()
    world.now -= HOUR_MS // 2  # a clock that is behind
    world.put(b'{"n":3}')
    world.work(1)

    world.now += HOUR_MS
    world.work(2, instance=2)

    assert (world.folder / FIRST).read_bytes() == before
    assert world.objects() == {
        FIRST: [{"n": 1}, {"n": 2}],
        FIRST.replace("-0.", "-1."): [{"n": 3}],
    }
    assert world.work(2, instance=1) is None


def test_what_is_much_is_written_before_its_hour_is_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the border, to the byte, with 100 beside each; its number is not given again."""
    monkeypatch.setattr(storage, "MAX_OBJECT_BYTES", 216)
    world.put(b'{"n":1}', b'{"n":22}')
    world.work(1)
    assert world.work(2) is None
    assert world.gathered.held() == {1: 215}
    assert world.atoms.held(1)[1] > 215

    world.put(b"{}")
    world.work(1)
    world.work(2)
    world.put(b'{"n":4}')
    world.work(1)
    world.end_hour()
    world.work(2)

    assert world.objects() == {
        FIRST: [{"n": 1}, {"n": 22}, {"n": None}],
        FIRST.replace("-0.", "-1."): [{"n": 4}],
    }
    assert world.gathered.held() == {}


@pytest.mark.parametrize("error", [StoreAway("a"), StoreRefuses("r"), FileRefused("f")])
def test_while_the_store_is_away_all_is_kept(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    world.put(b'{"n":1}')
    world.work(1)
    world.end_hour()
    with monkeypatch.context() as patch:
        patch.setattr("functions.files.folder.LocalFolder.write", _raising(error))
        result = world.work(2)
        assert result is not None
        assert len(result.later) == 1

    world.now += 100_000
    world.work(2)

    assert world.objects() == {FIRST: [{"n": 1}]}


def test_an_object_that_cannot_be_made_has_had_an_attempt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be tried without end, in the process that makes all others'."""
    world.put(b'{"n":1}')
    world.work(1)
    world.end_hour()
    with monkeypatch.context() as patch:
        patch.setattr(world.step._writer._process, "command", ("false",))
        result = world.work(2)
    assert result is not None
    (failure,) = result.failed.values()
    assert failure.reason.startswith("the object cannot be made: it takes too much")
    assert (failure.is_hopeless, result.later) == (False, {})
    assert result.processor_us > 0

    world.now += 100_000
    world.work(2)

    assert world.objects() == {FIRST: [{"n": 1}]}


def test_an_object_whose_turn_does_not_come_has_had_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put(b'{"n":1}')
    world.work(1)
    world.end_hour()
    turns = Turns(0.0)
    monkeypatch.setattr(world.step._writer, "_turns", turns)
    with turns.turn(2):
        result = world.work(2)

    assert result is not None
    assert (list(result.later.values()), result.failed) == ([AWAY_MS], {})


def test_who_seals_waits_for_who_gathers(world: World, dsn: str) -> None:
    """So an object that is written has all that was said to be in it."""
    world.put(b'{"n":1}')
    world.work(1)
    own = {"tenant": 1, "workflow": "w", "version": 1, "hour": HOUR}
    found: list[list[bytes]] = []
    other = Database(dsn, role=Role.DELIVERY)
    sealing = threading.Thread(
        target=lambda: found.append(PostgresGathered(other).sealed(TO_WRITE, Object(HOUR, 0)))
    )
    with world.database.transaction():
        world.gathered._rows("open", own)
        sealing.start()
        until(lambda: world.owner.rows("SELECT 1 FROM pg_locks WHERE NOT granted") != [])
        world.owner.rows(
            "INSERT INTO gathered_atoms (tenant_id, workflow, version, hour, number, body)"
            " VALUES (1, 'w', 1, %(hour)s, 0, '{\"n\":2}')",
            {"hour": HOUR},
        )
    sealing.join(60)
    other.close()

    assert found == [[b'{"n":1}', b'{"n":2}']]


def test_atoms_of_a_workflow_that_is_gone_go(world: World) -> None:
    world.put(b"{}")
    world.owner.rows("DELETE FROM workflows WHERE id = 'w'")

    result = world.work(1)

    assert result is not None
    assert result.settled == 1
    assert world.owner.rows("SELECT 1 FROM atoms") == []


def test_atoms_stay_where_others_were_each_time_faster_to_make_an_object(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workflow is there: they are gathered when they are shown again."""
    world.put(b'{"n":1}')
    with monkeypatch.context() as patch:
        patch.setattr(PostgresGathered, "_open", lambda *_: None)
        result = world.work(1)
    assert result is not None
    assert result.settled == 0
    assert len(world.owner.rows("SELECT 1 FROM atoms")) == 1

    world.now += 100_000
    result = world.work(1)
    assert result is not None
    assert result.settled == 1


def test_what_is_gathered_goes_with_its_dead_letter(world: World) -> None:
    """Before that it can be redriven; after it nobody could write it, and it would count in the
    quota for ever."""
    world.put(b'{"n":1}')
    world.work(1)
    world.end_hour()
    later = world.now + 49 * HOUR_MS
    world.atoms.forget(later)
    (ticket,) = world.atoms.take(TO_WRITE, 1, 1, world.now, world.now + 90_000)
    world.atoms.bury(TO_WRITE, 1, {ticket.id: "no"}, world.now)
    world.atoms.forget(later)
    world.owner.rows("DELETE FROM dead_atoms")
    world.atoms.forget(world.now)
    assert world.gathered.held() == {1: 107}

    world.atoms.forget(later)

    assert world.gathered.held() == {}
    assert world.owner.rows("SELECT 1 FROM gathered_atoms") == []


def test_what_does_not_go_together_is_text(tmp_path: Path) -> None:
    """Numbers and texts, numbers too large, objects without members, what is always null."""
    writer = Writer()
    rows = [
        b'{"a":1,"b":9223372036854775808,"c":{},"d":null,"e":[],"f":true}',
        b'{"a":"x","b":1,"c":{},"d":null,"e":[null],"f":1}',
    ]
    content, used = writer.file(rows, 1)
    (tmp_path / "f").write_bytes(content)
    writer.close()

    assert used > 0
    assert parquet.read_table(tmp_path / "f").to_pylist() == [
        {"a": "1", "b": "9223372036854775808", "c": "{}", "d": None, "e": "[]", "f": "true"},
        {"a": "x", "b": "1", "c": "{}", "d": None, "e": "[null]", "f": "1"},
    ]


def test_with_too_many_columns_an_atom_is_one(tmp_path: Path) -> None:
    writer = Writer()
    row = orjson.dumps({f"n{n}": n for n in range(1_001)})
    (tmp_path / "f").write_bytes(writer.file([row, b"{}"], 1)[0])
    (tmp_path / "g").write_bytes(writer.file([b"{}"], 1)[0])
    writer.close()

    assert parquet.read_table(tmp_path / "f").to_pylist() == [
        {"atom": row.decode()},
        {"atom": "{}"},
    ]
    assert parquet.read_table(tmp_path / "g").to_pylist() == [{"atom": "{}"}]


def test_with_too_many_cells_an_atom_is_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names times rows: a thousand other ones in each would take all memory there is."""
    monkeypatch.setattr(table_process, "MAX_CELLS", 4)
    rows = [b'{"a":1}', b'{"b":2}', b'{"a":3}']

    assert table_process.table_of(rows[:2]).column_names == ["a", "b"]
    assert table_process.table_of(rows).to_pylist() == [{"atom": each.decode()} for each in rows]


def _killed(*_: object) -> int:
    raise KeyboardInterrupt


def _raising(error: Exception) -> Any:
    def raises(*_: object) -> None:
        raise error

    return raises
