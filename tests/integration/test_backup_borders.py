"""A back-up has what crosses borders between tenants, with places that count from progress."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from backup_world import World
from old_store import Old
from port_builders import PARTITIONS, a_service_object

from pipeline.state.channels import Channels
from sandbox import argument_names
from servioticy.backup.about import FORMAT, About
from servioticy.backup.archive import Archive, written
from servioticy.backup.framing import write_record
from servioticy.backup.restoring import restore
from servioticy.backup.taking import back_up
from servioticy.domain.kept import TABLES
from servioticy.domain.model import StreamRef
from servioticy.domain.records import (
    BeginRecord,
    BorderRecord,
    BorderUpdate,
    EndRecord,
    LastOutside,
    ReleaseRecord,
    Source,
    UpdateRecord,
    read_record,
    write,
)
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.messaging.stretches import Record
from servioticy.storage import migrations
from servioticy.storage.database import Database
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.roles import Role
from servioticy.storage.snapshot import PostgresSnapshot, quoted

A = StreamRef("x", "a")
NOTHING = ReleaseRecord((), 0)


@pytest.fixture
def empty(empty_dsn: str, real_kafka: EmbeddedKafka, topic_prefix: str) -> Iterator[World]:
    """Where it is restored."""
    made = World(empty_dsn, real_kafka.bootstrap_servers, f"{topic_prefix}new-", made=False)
    yield made
    made.close()


class Border(World):
    """`x` of one tenant in partition 0, `r` of another one in partition 1 reads it.

    Partition 1 is stored up to 3; partition 0 up to 6, and of that record the trees of tenants
    before the second.
    """

    def __init__(self, *arguments: str) -> None:
        super().__init__(*arguments)
        self.stream = self.create("x")
        new = a_service_object(self.stored.other, "r", (("g", A),))
        self.stored.change_store.create(new, PARTITIONS)
        self.owner.rows("DELETE FROM pending_changes")
        self.accept(0, *(self.update("x", at) for at in range(8)))
        self.store_up_to(0, 6, 4, [self.row(self.stream, at, at) for at in range(6)])
        self.owner.rows("UPDATE progress SET next_tree = 2 WHERE log_partition = 0")

    def insert(self, table: str, **values: Any) -> None:
        names = ", ".join(values)
        places = ", ".join(f"%({name})s" for name in values)
        self.owner.rows(f"INSERT INTO {table} ({names}) VALUES ({places})", values)

    def border(self, source: Source, timestamp: int, of: int = 1, **more: Any) -> BorderRecord:
        update = BorderUpdate(*A, timestamp, (0,), msgspec.Raw(b'{"v":1}'))
        return BorderRecord(source, of, (update,), **more)


@pytest.fixture
def world(dsn: str, real_kafka: EmbeddedKafka, topic_prefix: str) -> Iterator[Border]:
    made = Border(dsn, real_kafka.bootstrap_servers, topic_prefix)
    yield made
    made.close()


@pytest.fixture
def restored(world: Border, empty: World, tmp_path: Path) -> Iterator[Any]:
    """Call it: it moves the world, and hands out what programs know of the new one."""
    databases = []

    def move() -> PostgresPartitionStore:
        back_up(tmp_path / "file", world.settings)
        with Archive(tmp_path / "file") as archive:
            restore(archive, empty.settings)
        databases.append(Database(empty.settings.store.dsn, role=Role.PIPELINE))
        return PostgresPartitionStore(databases[0], argument_names)

    yield move
    for each in databases:
        each.close()


def test_places_count_from_progress_of_the_partition_they_are_of(
    world: Border, empty: World, restored: Any
) -> None:
    """What is stored of the record within which progress stands is below zero, too."""
    provider, reader = world.stored.tenant, world.stored.other
    world.accept(1, *(world.update("x", at) for at in range(3)))
    world.store_up_to(1, 3, 3, [])
    world.owner.rows(
        "UPDATE stored_updates SET log_offset = 6 WHERE log_offset = 5 AND log_partition = 0"
    )
    edge: dict[str, Any] = {"reader": "r", "source": "x", "stream": "a", "tenant_id": reader}
    edge["provider_id"] = provider
    world.insert(
        "inputs_from_outside",
        **edge,
        kept=True,
        fed_in=1,
        left_in=0,
        told_in=0,
        told_at=5,
        left_told_in=1,
        left_told_at=2,
        awaits_in=0,
        awaits_at=6,
        arrived_in=1,
        arrived_at=1,
    )
    world.insert("outside_readers", **edge, log_partition=1, change=7, is_open=True)
    mark = {"source": "x", "stream": "a", "tenant_id": provider, "log_partition": 1}
    world.insert("marks", **mark, from_partition=0, log_offset=6, part=2)
    world.insert("marks", **mark, from_partition=1, log_offset=1, part=0)
    begin = BeginRecord(Source(0, 2), provider, reader, ("r",), (LastOutside(*A),), 1, (0, 3))
    for tree, record, held in (
        (reader, world.border(Source(0, 5), 1, forwarded=(0, 7)), True),
        (0, begin, False),
    ):
        world.insert(
            "put_off",
            log_partition=1,
            log_offset=1,
            tree=tree,
            tenant_id=reader,
            service_object="r",
            record=write(record),
            held=held,
        )

    restored()

    assert empty.table("outside_readers") == world.table("outside_readers")
    places = (
        "SELECT fed_in, left_in, told_in, told_at, left_told_in, left_told_at, awaits_in,"
        " awaits_at, arrived_in, arrived_at FROM inputs_from_outside"
    )
    assert empty.owner.rows(places) == [(1, 0, 0, -2, 1, -1, 0, -1, 1, -2)]
    marks = "SELECT from_partition, log_offset, part FROM marks ORDER BY 1"
    assert empty.owner.rows(marks) == [(0, -1, 2), (1, -2, 0)]
    offsets = "SELECT log_offset FROM stored_updates ORDER BY 1"
    assert empty.owner.rows(offsets) == [(at,) for at in (-7, -6, -5, -4, -3, -1)]
    assert empty.table("progress") == ["(0,1,1,2)", "(1,1,1,0)"]
    again = "SELECT log_offset, tree FROM put_off WHERE taken_up ORDER BY 1"
    assert empty.owner.rows(again) == [(-3, 0), (-1, 0)]
    waiting = (
        "SELECT log_offset, tree, held, record FROM put_off WHERE log_partition = 1 ORDER BY 2"
    )
    assert [
        (offset, tree, held, read_record(bytes(record)))
        for offset, tree, held, record in empty.owner.rows(waiting)
    ] == [
        # Its first partition is not past what it forwarded.
        (-2, 0, False, msgspec.structs.replace(begin, source=Source(0, -5), forwarded=(0, -3))),
        (-2, reader, True, world.border(Source(0, -2), 1, forwarded=(0, 2))),
    ]
    assert empty.records(0)[1:] == [world.update("x", 6), world.update("x", 7)]


def test_what_was_sent_and_may_be_sent_again_is_taken_once(
    world: Border, empty: World, restored: Any
) -> None:
    """By the marks, which know it by the same place, in the log or not."""
    provider, reader = world.stored.tenant, world.stored.other
    assert (provider, reader) == (1, 2)
    edge = {"reader": "r", "source": "x", "stream": "a", "tenant_id": reader}
    world.insert("inputs_from_outside", **edge, provider_id=provider, kept=False, fed_in=1)
    world.insert(
        "marks",
        source="x",
        stream="a",
        tenant_id=provider,
        log_partition=1,
        from_partition=0,
        log_offset=4,
        part=0,
    )
    sent = [world.border(Source(0, at, part), 9) for at, part in ((4, 0), (5, 0), (5, 1), (6, 0))]
    for number, record in enumerate(sent):
        world.insert(
            "crossings",
            log_partition=0,
            log_offset=record.source.offset,
            tree=0 if record.source.offset < 6 else 1,
            number=number,
            partitions="{1}",
            record=write(record),
        )
    # As it came there; of what the back-up does not have as stored it has nothing.
    others = [world.border(Source(0, 6), 9, of=2), world.border(Source(0, 7), 9)]
    end = EndRecord(Source(0, 5), provider, reader, ("r",), (A,))
    world.accept(1, sent[0], sent[1], end, *others)

    store = restored()

    crossings = store.crossings(0)
    again = [read_record(each.record) for each in crossings]
    assert [each.source for each in again if isinstance(each, BorderRecord)] == [
        *(Source(0, -3), Source(0, -2), Source(0, -2, 1), Source(0, -1)),
    ]
    assert [each.offset for each in crossings] == [-3, -2, -2, -1]
    tail = empty.records(1)[1:]
    there = msgspec.structs.replace(end, source=Source(0, -2))
    assert tail == [again[0], again[1], there, NOTHING, NOTHING]
    assert [tuple(each) for each in store.taken_up(0)] == [(-3, 0), (-2, 0), (-1, 0)]
    channels = Channels(1, store)
    channels.look_up([A])
    assert [each.reader for each in channels.readers(A)] == ["r"]
    came = [*tail, *again, world.border(Source(0, 1), 9)]
    taken = [
        each.source
        for each in came
        if isinstance(each, BorderRecord) and channels.takes(A, 0, each.source[1:])
    ]
    assert taken == [Source(0, -2), Source(0, -2, 1), Source(0, -1), Source(0, 1)]


def test_what_has_no_mark_is_taken_wherever_it_was_made(
    world: Border, empty: World, restored: Any
) -> None:
    """So it is where a store was upgraded, and nothing has come over the border since."""
    store = restored()
    channels = Channels(1, store)
    channels.look_up([A])

    assert channels.takes(A, 0, (-3, 0))
    assert not channels.takes(A, 0, (-3, 0))


@pytest.fixture
def older(empty: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A back-up as the release before borders made it, of two tenants that share a component."""
    whole = migrations._files()
    before = [each for each in whole if each.name < "0130"]
    monkeypatch.setattr(migrations, "_files", lambda: before)
    migrations.migrate(empty.owner)
    empty.owner.rows(
        "INSERT INTO tenants (name) VALUES ('alice'), ('bob');"
        "INSERT INTO progress VALUES (0, 0, 0), (1, 0, 0)"
    )
    old = Old(empty.owner)
    old.create(1, "x", "x", public=True)
    old.create(2, "r", "x", [("x", "a")], change=2)
    old.create(2, "later", "x", [("x", "a")], active=None)
    old.update("x", 5, -2)
    old.update("x", 9, -1)
    snapshot = PostgresSnapshot(empty.owner)
    with written(tmp_path / "file") as archive:
        for table in TABLES:
            if empty.owner.rows("SELECT to_regclass(%(t)s)", {"t": table.name}) == [(None,)]:
                continue
            columns = snapshot.columns(table)
            names = ", ".join(map(quoted, columns))
            with archive.part(f"tables/{table.name}", tuple(columns)) as part:
                sql = f"COPY (SELECT {names} FROM {table.name}) TO STDOUT"
                empty.owner.copy(sql, part.file)
        for partition in range(PARTITIONS):
            with archive.part(f"log/updates-{partition}") as part:
                if partition == 0:
                    update = UpdateRecord(*A, 10, msgspec.Raw(b'{"v":10}'))
                    write_record(Record(70, None, write(update)), part.file)
                    part.count += 1
            with archive.part(f"log/emitted-{partition}"):
                pass
        about = About(
            *(FORMAT, "2026-01-01T00:00:00", "1", "16", "updates", "id", migrations.known()),
            *({0: 70, 1: 0}, snapshot.sequences(), tuple(archive.parts)),
        )
        archive.end(about)
    empty.owner.rows("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    monkeypatch.setattr(migrations, "_files", lambda: whole)
    return tmp_path / "file"


def test_a_back_up_from_before_borders_is_split_with_the_rows_it_has(
    older: Path, empty: World
) -> None:
    """And then goes on in the new log, as an upgraded store does in its own."""
    with Archive(older) as archive:
        restore(archive, empty.settings)

    rows = empty.owner.rows
    assert rows("SELECT id, component FROM service_objects ORDER BY sequence") == [
        ("x", "x"),
        ("r", "r"),
        ("later", "later"),
    ]
    known = "SELECT reader, fed_in, told_at, timestamp, document::text FROM inputs_from_outside"
    assert rows(known) == [("r", 0, None, 9, '{"v":9}')]
    assert rows("SELECT reader, log_partition, is_open FROM outside_readers") == [("r", 0, True)]
    told = "SELECT change -> 'readings' -> 0 ->> 'reader' FROM pending_changes"
    assert rows(told) == [("later",)]
    assert empty.table("progress") == ["(0,1,1,0)", "(1,1,1,0)"]
    assert [each[0] for each in rows("SELECT log_offset FROM updates ORDER BY 1")] == [-2, -1]
    assert empty.records(0) == [NOTHING, UpdateRecord(*A, 10, msgspec.Raw(b'{"v":10}'))]
