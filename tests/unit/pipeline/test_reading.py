"""Records by which tenants read each other's streams, by themselves: what each brings about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from engine_builders import document, recalled
from memory import MemoryPlatform
from memory.state import InputRow
from oracle import Composite, Object
from serial_order import define

from pipeline.batching.dead_letters import DeadLetters
from pipeline.batching.intake import Intake
from pipeline.changes import revoking
from pipeline.changes.control import Control
from pipeline.state.partition import Partition
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.model import Grant, InputRef, ServiceObjectKey, StreamRef
from servioticy.domain.records import (
    BeginRecord,
    ControlRecord,
    DeletionRecord,
    EndRecord,
    ErasureRecord,
    GrantRecord,
    LastOutside,
    LogRecord,
    ReadingRecord,
    RevocationRecord,
    Source,
    read_record,
    write,
)
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.borders import OutsideReader
from servioticy.ports.change_store import NewGrant
from servioticy.ports.effects import BeginInputs, EndInputs, Read
from servioticy.ports.put_off import PutOff, TreeKey

D, E = StreamRef("x", "d"), StreamRef("x", "e")


class World:
    """One partition of four, which has `x` of a provider with the streams `d` and `e`.

    `r` of another tenant has composites over both, `elsewhere` is the provider's in partition 3.
    """

    def __init__(self) -> None:
        self.platform = MemoryPlatform(4)
        self.state = self.platform.state
        tenants = self.platform.tenants
        self.provider, self.tenant = (
            tenants.tenant_of(tenants.create_tenant(name)) or 0 for name in "pq"
        )
        define(Object("x", ("d", "e"), ()), {}, self.provider, self.platform)
        define(Object("elsewhere", ("d",), ()), {}, self.provider, self.platform)
        composites = (
            Composite("c", ("gd",), None),
            Composite("k", ("own", "ge"), None),
            Composite("o", ("own",), None),
        )
        groups = {"gd": (tuple(D),), "ge": (tuple(E),)}
        codes = {("r", "c"): "function(gd){return 1}", ("r", "o"): "function(own){return 1}"}
        codes["r", "k"] = "function(own,ge){return 1}"
        define(Object("r", ("own",), composites, groups), codes, self.tenant, self.platform)
        for kept in self.state.service_objects.values():
            kept.active_version, kept.active_change, kept.owner_partition = 1, 1, 0
        self.state.service_objects["elsewhere"].owner_partition = 3
        for log in self.state.log:
            log.clear()
        for ref in (D, E):
            row = InputRow(self.tenant, self.provider, kept=ref == E, fed_in=0)
            self.state.inputs_from_outside["r", ref] = row
        self.batches: list[Batch] = []
        store = self.platform.partition_store(argument_names)
        inner = store.store

        def noted(batch: Batch) -> Mapping[int, int]:
            self.batches.append(batch)
            return inner(batch)

        store.store = noted  # type: ignore[method-assign]
        self.output = self.platform.output(0)
        self.partition = Partition(0, store, 10**6)
        self.control = Control(self.partition, self.output)

    def send(self, timestamp: int) -> None:
        """An update of `x/d` is stored."""
        at = self.partition.progress.offset
        number = self.state.streams["x", "d"]
        row = StoredUpdate(self.provider, number, timestamp, document(timestamp), 1, at, 0)
        self.partition.commit(lambda begun: Batch(0, begun.offset, at + 1, 0, [row]))

    def apply(self, record: ControlRecord) -> Batch:
        self.control.apply(record, self.partition.progress.offset)
        return self.batches[-1]

    def read(self, *sources: StreamRef, change: int = 5, to: int = 1, **more: Any) -> Batch:
        refs = tuple((each.service_object, each.stream) for each in sources)
        return self.apply(ReadingRecord("r", self.tenant, self.provider, to, refs, change, **more))

    def row(self, ref: StreamRef) -> InputRow:
        return self.state.inputs_from_outside["r", ref]

    def begin(self, offset: int, *streams: LastOutside, **more: Any) -> BeginRecord:
        readers = more.pop("readers", ("r",))
        found = streams or (LastOutside(*D),)
        return BeginRecord(Source(2, offset), self.provider, self.tenant, readers, found, **more)

    def end(self, offset: int, *streams: StreamRef, **more: Any) -> EndRecord:
        readers = more.pop("readers", ("r",))
        refs = tuple((each.service_object, each.stream) for each in streams or (D,))
        return EndRecord(Source(2, offset), self.provider, self.tenant, readers, refs, **more)

    def records(self, partition: int) -> list[LogRecord]:
        """What has been sent to a partition."""
        return [record for _offset, record in self.platform.records(partition)]


@pytest.fixture
def world() -> World:
    return World()


def told(batch: Batch) -> list[tuple[tuple[int, ...], LogRecord]]:
    return [(each.partitions, read_record(each.record)) for each in batch.crossings]


def kinds(batch: Batch) -> list[tuple[tuple[int, ...], str]]:
    return [(at, type(record).__name__) for at, record in told(batch)]


# The provider's side.


def test_who_reads_is_noted_and_told_the_last_updates(world: World) -> None:
    world.send(7)
    batch = world.read(D, E)

    rows = tuple(OutsideReader("r", world.tenant, each, 1, 5, is_open=True) for each in (D, E))
    assert batch.effect == Read("r", world.provider, 5, rows)
    ((at, record),) = told(batch)
    assert at == (1,)
    assert isinstance(record, BeginRecord)
    assert record.source == Source(0, 1)
    assert [(each.ref, each.timestamp) for each in record.streams] == [(D, 7), (E, None)]
    assert world.records(1) == [record], "behind the transaction it is sent"


def test_updates_go_where_it_reads_from_then_on(world: World) -> None:
    """Whether its provider's component is known by then or not."""
    world.partition.service_object("x", at_once=True)
    world.read(D, to=1)
    assert world.partition.graph.stream(D).read_in == (1,)
    world.partition.forget(["x"])
    world.partition.service_object("x", at_once=True)
    assert world.partition.graph.stream(D).read_in == (1,)
    assert world.partition.graph.stream(E).read_in == ()


def test_what_may_not_be_read_is_noted_as_such_and_it_is_told_so(world: World) -> None:
    """By a grant it can be opened: a stream that is not there, by a later version."""
    batch = world.read(D, StreamRef("x", "nothing"), StreamRef("nobody", "d"))

    assert isinstance(batch.effect, Read)
    assert [each.is_open for each in batch.effect.rows] == [True, False, False]
    assert kinds(batch) == [((1,), "EndRecord"), ((1,), "BeginRecord")]


def test_streams_that_are_computed_elsewhere_are_told_of_there(world: World) -> None:
    other = StreamRef("elsewhere", "d")
    batch = world.read(D, other)

    assert isinstance(batch.effect, Read)
    assert [each.source for each in batch.effect.rows] == [D]
    (sent,) = world.records(3)
    assert sent == ReadingRecord("r", world.tenant, world.provider, 1, (tuple(other),), 5)


def test_what_it_does_not_name_any_more_is_not_read(world: World) -> None:
    world.read(D, E)
    world.partition.service_object("x", at_once=True)
    world.read(E, change=6)

    assert [source for _reader, source in world.state.outside_readers] == [E]
    world.partition.service_object("x", at_once=True)
    assert world.partition.graph.stream(D).read_in == ()
    assert kinds(world.read(change=7)) == []
    assert not world.state.outside_readers


def test_a_change_may_be_told_in_several_records(world: World) -> None:
    world.read(D, E)
    world.read(D, change=6, ends=False)
    assert len(world.state.outside_readers) == 2
    world.read(change=6)

    assert [source for _reader, source in world.state.outside_readers] == [D]


def test_an_older_change_does_nothing(world: World) -> None:
    world.read(D, change=6)
    before = dict(world.state.outside_readers)
    batch = world.read(E, change=5, to=2)

    assert batch.effect is None
    assert not batch.crossings
    assert world.state.outside_readers == before


def test_told_twice_it_begins_twice_where_it_reads(world: World) -> None:
    world.read(D)

    assert kinds(world.read(D)) == [((1,), "BeginRecord")]


def test_a_move_is_told_to_both_partitions_at_one_place(world: World) -> None:
    world.read(D, E, change=5, to=1)
    batch = world.read(D, E, change=6, to=2)

    (first, begin), (second, end) = told(batch)
    assert (first, second) == ((2,), (1,))
    assert isinstance(begin, BeginRecord)
    assert isinstance(end, EndRecord)
    assert begin.moved_from == 1
    assert [each.timestamp for each in begin.streams] == [None, None]
    assert end.moved_to == 2
    assert begin.source == end.source
    world.partition.service_object("x", at_once=True)
    assert world.partition.graph.stream(D).read_in == (2,)


def test_who_might_not_read_before_it_moved_just_begins_or_does_not(world: World) -> None:
    world.state.definitions["x", 1] = world.state.definitions["x", 1].replace(
        b'"true"', b'"false"'
    )
    assert kinds(world.read(D, change=5, to=1)) == [((1,), "EndRecord")]
    grant = Grant("g", world.tenant, "d", derived_only=True)
    key = ServiceObjectKey(world.provider, "x")
    world.platform.change_store.grant(NewGrant(key, grant, 0), 9)
    assert kinds(world.read(D, change=6, to=2)) == [((2,), "EndRecord")]

    batch = world.apply(GrantRecord("x", "g"))
    assert kinds(batch) == [((2,), "BeginRecord")]
    assert [each.is_open for each in batch.outside] == [True]
    assert kinds(world.apply(GrantRecord("x", "g"))) == [], "once is enough"
    batch = world.apply(RevocationRecord("x", "g"))
    assert kinds(batch) == [((2,), "EndRecord")]
    assert [each.is_open for each in batch.outside] == [False]
    assert kinds(world.apply(RevocationRecord("x", "g"))) == []


def test_readers_are_told_of_an_erasure_and_of_a_deletion(world: World) -> None:
    world.send(7)
    world.read(D, E)
    batch = world.apply(ErasureRecord("x", "d", 9))
    ((_at, record),) = told(batch)
    assert isinstance(record, BeginRecord)
    assert [(each.ref, each.timestamp) for each in record.streams] == [(D, None)]
    world.send(8)
    assert kinds(world.apply(ErasureRecord("x", "d", 9))) == [], "it comes again"

    batch = world.apply(DeletionRecord("x"))
    assert kinds(batch) == [((1,), "EndRecord")]
    assert kinds(world.apply(DeletionRecord("x"))) == []


def test_what_is_put_off_is_sent_before_it_counts_as_done(world: World) -> None:
    world.partition.commit(lambda begun: Batch(0, begun.offset, 9, 0))
    record = ReadingRecord("r", world.tenant, world.provider, 1, (tuple(D),), 5)
    late = PutOff(3, world.provider, "x", write(record))

    world.control.apply_late(world.control.change_of(record, late), late)

    batch = world.batches[-1]
    assert batch.taken_up == (TreeKey(3),)
    assert (batch.first_offset, batch.next_offset) == (9, 9)
    assert [each.offset for each in batch.crossings] == [3]
    assert len(world.records(1)) == 1
    assert world.output.acknowledged == 9


# The reader's side.


def test_a_begin_feeds_who_is_computed_here(world: World) -> None:
    world.row(E).fed_in, world.row(E).is_open = None, False
    text = msgspec.Raw(document(7))
    batch = world.apply(world.begin(4, LastOutside(*E, 7, text)))

    assert batch.effect == BeginInputs(
        world.tenant, ("r",), world.provider, ((E, 7, document(7)),), (2, 4)
    )
    assert (world.row(E).fed_in, world.row(E).is_open) == (0, True)
    assert world.row(E).last is not None


def test_what_is_known_of_an_input_is_looked_up_again(world: World) -> None:
    """Its component stays known where it may read as before, else not."""
    world.partition.service_object("r", at_once=True)
    world.partition.channels.look_up([D, E])
    known = InputRef(E, world.state.service_objects["r"].sequence)
    own = world.partition.graph.stream(StreamRef("r", "own"))
    assert recalled(world.partition, own)[known] is None
    world.apply(world.begin(4, LastOutside(*E, 7, msgspec.Raw(document(7)))))
    assert world.partition.known("r") is not None
    last = recalled(world.partition, own)[known]
    assert last is not None
    assert last.timestamp == 7

    world.apply(world.end(5, E))
    assert world.partition.known("r") is None
    assert world.partition.service_object("r", at_once=True) is not None
    assert not world.partition.graph.knows(known)


def test_those_who_have_moved_are_told_where_they_are(world: World) -> None:
    """With the place here, so that it counts once there; and nothing is brought about here."""
    world.state.service_objects["r"].owner_partition = 2
    for record in (world.begin(4), world.end(5)):
        place = 0, world.partition.progress.offset
        batch = world.apply(record)

        assert batch.effect is None
        (sent,) = world.records(2)
        assert sent == msgspec.structs.replace(record, forwarded=place)
        world.state.log[2].clear()


def test_what_is_sent_on_changes_what_is_known_and_not_where_it_is_fed(world: World) -> None:
    batch = world.apply(world.begin(4, forwarded=(3, 8)))

    assert isinstance(batch.effect, BeginInputs)
    assert batch.effect.forwarded


def test_the_beginning_of_a_move_is_not_sent_on(world: World) -> None:
    """Where it has moved to meanwhile a later one comes of itself."""
    world.state.service_objects["r"].owner_partition = 2
    batch = world.apply(world.begin(4, moved_from=3))

    assert batch.effect is None
    assert world.records(2) == []


def test_an_end_tells_the_composites_that_read_it(world: World) -> None:
    batch = world.apply(world.end(4, D, E))

    assert batch.effect == EndInputs(world.tenant, ("r",), (D, E), (2, 4))
    numbers = {number: name for (id_, name), number in world.state.streams.items() if id_ == "r"}
    assert [numbers[each.stream_id] for each in batch.verdicts] == ["c", "k"]
    assert {each.verdict for each in batch.verdicts} == {"revoked"}
    assert {each.times for each in batch.verdicts} == {1}


def test_what_might_not_be_read_before_ends_without_a_word(world: World) -> None:
    world.row(D).is_open = False

    assert [each.verdict for each in world.apply(world.end(4, D)).verdicts] == []


def test_no_more_are_told_than_there_is_room_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revoking, "MAX_TOLD", 1)

    assert len(world.apply(world.end(4, D, E)).verdicts) == 1


def test_the_end_of_a_move_passes_through_the_partition_that_it_left(world: World) -> None:
    """Which sends nothing on any more; it is the owner's then, and nobody is told anything."""
    world.state.service_objects["r"].owner_partition = 2
    record = world.end(4, moved_to=2)
    place = 0, world.partition.progress.offset
    batch = world.apply(record)

    assert batch.effect == EndInputs(world.tenant, ("r",), (D,), (2, 4), moved=True)
    assert batch.verdicts == ()
    assert world.records(2) == [msgspec.structs.replace(record, forwarded=place)]
    assert world.row(D).fed_in is None
    assert world.row(D).is_open


def test_the_end_of_a_move_frees_what_was_held(world: World) -> None:
    world.row(D).awaits = (2, 4)
    held = PutOff(1, world.tenant, "r", b"{}", 9, held=True)
    world.partition.commit(lambda begun: Batch(0, begun.offset, 2, 0, put_off=[held]))
    assert not world.partition.waiting
    batch = world.apply(world.end(4, moved_to=0, forwarded=(1, 8)))

    assert batch.effect == EndInputs(world.tenant, ("r",), (D,), (2, 4), arrived=True)
    assert world.row(D).awaits is None
    assert world.partition.waiting == {world.tenant: 1}


@pytest.mark.parametrize("kind", ["begin", "end"])
def test_one_that_is_sent_on_counts_once(world: World, kind: str) -> None:
    passes: tuple[type[Exception], ...] = ()
    intake = Intake(world.partition, world.output, DeadLetters(0, world.output, passes), passes)

    def is_repeat(at: int, place: tuple[int, int] | None) -> bool:
        record = getattr(world, kind)(4, forwarded=place)
        assert isinstance(record, BeginRecord | EndRecord)
        return intake.is_repeat(record, Row(at, write(record)))

    assert [is_repeat(1, (3, 8)), is_repeat(2, (3, 8)), is_repeat(3, (3, 9))] == [
        False,
        True,
        False,
    ]
    assert [is_repeat(4, None), is_repeat(5, None)] == [False, False]


def test_whose_change_it_is(world: World) -> None:
    """It waits with all else of the tenant. What is sent on is nobody's: it has left."""
    passes: tuple[type[Exception], ...] = ()
    intake = Intake(world.partition, world.output, DeadLetters(0, world.output, passes), passes)
    reading = ReadingRecord("r", world.tenant, world.provider, 1, (), 5)

    assert intake.tenant_changing(reading) == world.provider
    assert intake.tenant_changing(world.begin(4)) == world.tenant
    assert intake.tenant_changing(world.end(4)) == world.tenant
    assert intake.tenant_changing(world.end(4, moved_to=0)) == world.tenant
    assert intake.tenant_changing(world.end(4, moved_to=2)) is None
