"""What the log is told of who reads streams of other tenants, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from memory import MemoryPlatform
from memory.log import MemoryLog
from new_service_objects import new_service_object

from servioticy.changes import Changes
from servioticy.domain.model import ServiceObjectKey, StreamRef
from servioticy.domain.records import (
    AcquireRecord,
    DefinitionRecord,
    DeletionRecord,
    LogRecord,
    ReadingRecord,
    ReleaseRecord,
    read_record,
    write,
)
from servioticy.domain.topics import MAX_MESSAGE_BYTES
from servioticy.errors import Unavailable
from servioticy.ports.batches import Batch
from servioticy.ports.change_store import Reading
from servioticy.ports.effects import Activate, BeginInputs
from servioticy.readings import MAX_SOURCES, reading_records

STREAMS: dict[str, Any] = {"a": {"channels": {}}}


class Told(MemoryLog):
    """A log that remembers the order over its partitions, and may fail at readings."""

    def __init__(self, platform: MemoryPlatform) -> None:
        super().__init__(platform.state)
        self.told: list[tuple[int, LogRecord]] = []
        self.refuses = False

    def append(self, partition: int, record: LogRecord) -> int:
        self.told.append((partition, record))
        return super().append(partition, record)

    def append_all(self, records: Sequence[tuple[int, LogRecord]]) -> None:
        if self.refuses and any(isinstance(each, ReadingRecord) for _, each in records):
            raise Unavailable("the broker does not answer")
        self.told += records
        super().append_all(records)


class World:
    """The provider's `x` is in partition 0; what a tenant makes next is in partition 1."""

    def __init__(self) -> None:
        self.platform = MemoryPlatform(2)
        self.log = Told(self.platform)
        self.changes = Changes(self.platform.graph, self.platform.change_store, self.log)
        self.provider, self.reader = (
            self.platform.tenants.tenant_of(self.platform.tenants.create_tenant(each)) or 0
            for each in ("provider", "reader")
        )
        self.create(self.provider, "x")
        self.log.told.clear()

    def create(self, tenant: int, id_: str, *reads: str) -> None:
        groups = {f"g{n}": {"soIds": [each], "stream": "a"} for n, each in enumerate(reads)}
        document = {"streams": STREAMS, "groups": groups, "public": "true"}
        self.changes.create(new_service_object(tenant, id_, document))

    def pop_told(self) -> list[tuple[int, LogRecord]]:
        told, self.log.told = self.log.told, []
        return told

    def reading(self, change: int, *sources: str, to: int = 1) -> ReadingRecord:
        named = tuple((each, "a") for each in sources)
        return ReadingRecord("r", self.reader, self.provider, to, named, change)


@pytest.fixture
def world() -> World:
    return World()


def test_the_provider_is_told_behind_the_definition(world: World) -> None:
    """Its answer would else come before the reader knows what it reads."""
    world.create(world.reader, "r", "x")

    assert world.pop_told() == [
        (1, DefinitionRecord("r", 1, 2)),
        (0, world.reading(2, "x")),
    ]


def test_changes_made_together_are_told_together(world: World) -> None:
    news = [
        new_service_object(
            world.reader,
            id_,
            {"streams": STREAMS, "groups": {"g": {"soIds": ["x"], "stream": "a"}}},
        )
        for id_ in ("r", "s")
    ]
    world.changes.create_all(news)

    told = [record for _, record in world.pop_told()]
    assert [type(each).__name__ for each in told] == ["DefinitionRecord"] * 2 + [
        "ReadingRecord"
    ] * 2
    assert [each.reader for each in told if isinstance(each, ReadingRecord)] == ["r", "s"]


def test_who_is_deleted_reads_nothing_any_more(world: World) -> None:
    world.create(world.reader, "r", "x")
    world.pop_told()

    world.changes.delete(ServiceObjectKey(world.reader, "r"), None, 2000)

    assert world.pop_told() == [(1, DeletionRecord("r")), (0, world.reading(3))]
    ((_tenant, end),) = world.changes.overdue(3000)
    world.changes.tell_again([(world.reader, end)])
    assert world.pop_told() == [(1, DeletionRecord("r")), (0, world.reading(4))]


def test_what_moves_tells_where_it_is_from_now_on(world: World) -> None:
    """Behind its release, and behind the definition that moves it."""
    world.create(world.reader, "r", "x")
    for id_, reads in (("s", ()), ("t", ("s",))):
        world.create(world.reader, id_, *reads)
    store = world.platform.partition_store(lambda _: ())
    store.begin(1)
    x = StreamRef("x", "a")
    store.store(Batch(1, 0, 1, 0, effect=Activate("r", 1, 9, (x,))))
    begin = BeginInputs(world.reader, ("r",), world.provider, ((x, None, None),), (0, 1))
    store.store(Batch(1, 1, 2, 0, effect=begin))
    world.pop_told()

    world.create(world.reader, "u", "r", "s")

    assert world.pop_told() == [
        (1, ReleaseRecord(("r",), 0)),
        (0, AcquireRecord(("r",), 1, 1)),
        (0, DefinitionRecord("u", 1, 5)),
        (0, world.reading(5, "x", to=0)),
    ]


def test_what_was_not_told_is_told_with_the_next_change(world: World) -> None:
    world.log.refuses = True
    with pytest.raises(Unavailable):
        world.create(world.reader, "r", "x")
    assert world.pop_told() == [(1, DefinitionRecord("r", 1, 2))]

    world.log.refuses = False
    world.create(world.reader, "s")

    first, second, *_ = world.pop_told()
    assert (first, second) == ((1, DefinitionRecord("r", 1, 2)), (0, world.reading(2, "x")))
    assert world.platform.change_store.pending() == []


# What is too long for one record.


def reading(*names: str) -> Reading:
    return Reading("r", 1, 0, 2, 1, tuple((each, "a") for each in names))


@pytest.mark.parametrize(
    ("sources", "sizes"),
    [
        (0, [0]),
        (1, [1]),
        (MAX_SOURCES, [MAX_SOURCES]),
        (MAX_SOURCES + 1, [MAX_SOURCES, 1]),
        (3 * MAX_SOURCES, [MAX_SOURCES] * 3),
    ],
)
def test_a_change_ends_with_its_last_record(sources: int, sizes: list[int]) -> None:
    found = list(reading_records(7, reading(*map(str, range(sources)))))

    assert [len(each.sources) for each in found] == sizes
    assert [each.ends for each in found] == [False] * (len(sizes) - 1) + [True]
    assert [name for each in found for name, _ in each.sources] == [*map(str, range(sources))]
    assert {each.change for each in found} == {7}


def test_no_record_is_too_large_for_the_log() -> None:
    """Whatever the names are: each character may take six bytes."""
    names = [f"{number}" + "\x01" * 200 for number in range(2 * MAX_SOURCES)]

    found = list(reading_records(7, reading(*names)))

    assert max(len(write(each)) for each in found) < MAX_MESSAGE_BYTES / 2
    assert [name for each in found for name, _ in each.sources] == names
    assert [read_record(write(each)) for each in found] == found
