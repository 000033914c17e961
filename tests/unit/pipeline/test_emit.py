"""Stage 4 by itself: stored first, then sent, and what is stored is sent whatever happens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from engine_builders import C, D, E, document, logged, recalled
from memory import MemoryPlatform
from oracle import Composite, Object
from serial_order import define

from pipeline.growth import RegionOutput, Verdict
from pipeline.stages import rows
from pipeline.stages.emit import emit, send
from pipeline.state.batch import BatchState
from pipeline.state.partition import Partition
from pipeline.work import Forwarded, LoggedUpdate, Work
from sandbox import argument_names
from servioticy.domain.emissions import Emission, emission
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.records import EmittedRecord, read_emitted
from servioticy.errors import Fenced, Unavailable
from servioticy.ports.batches import Batch
from servioticy.ports.borders import Crossing
from servioticy.ports.put_off import PutOff, TreeKey


class Bug(Exception):
    """Something that nobody foresaw."""


class FakeOutput:
    """Takes note of what is sent; fails with what is due for a timestamp, each time."""

    def __init__(self, **due: type[Exception]) -> None:
        self.acknowledged = 0
        self.calls: list[Any] = []
        self.crossings: list[Crossing] = []
        self._due = {int(name.removeprefix("at")): error for name, error in due.items()}

    def emit(
        self,
        next_offset: int,
        emissions: Sequence[Emission],
        crossings: Sequence[Crossing] = (),
    ) -> None:
        times = [read_emitted(value).timestamp for _key, value in emissions]
        for each in times:
            if each in self._due:
                raise self._due[each]
        self.calls.append((next_offset, times))
        self.crossings += crossings

    def flush(self) -> None:
        self.calls.append("flush")


@pytest.fixture
def partition(monkeypatch: pytest.MonkeyPatch) -> Partition:
    """One where `so` with the streams `d` and `c` is computed."""
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("t")) or 0
    thing = Object("so", ("d", "e"), (Composite("c", ("d",), lambda values: None),))
    define(thing, {("so", "c"): "function(d){return 1}"}, tenant, platform)
    for kept in platform.state.service_objects.values():
        kept.active_version = 1
    found = Partition(0, platform.partition_store(argument_names), 10**6)
    found.service_object("so")
    return found


def stored(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> list[Batch]:
    """What is stored from now on."""
    batches: list[Batch] = []

    def store(batch: Batch) -> dict[int, int]:
        batches.append(batch)
        return {}

    monkeypatch.setattr(partition.store, "store", store)
    return batches


def state_of(
    partition: Partition,
    *updates: LoggedUpdate,
    derived: int | None = None,
    state: bytes | None = None,
    before: LastUpdate | None = None,
) -> BatchState:
    """Updates from outside, of which the first has made one of `c` with this timestamp."""
    graph = partition.graph
    origins = [[graph.stream(root.origin) for root in each.roots] for each in updates]
    last_updates: dict[StreamRef, LastUpdate | None] = {D: before}
    found = BatchState(updates, origins, last_updates)
    if derived is not None:
        composite = graph.stream(C)
        assert composite.region is not None
        made = composite, derived, document(derived), (0,), state
        found.add([RegionOutput(composite.region, 0, [made])])
    return found


def test_updates_are_stored_and_sent_in_the_serial_order(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tree by tree, within a tree breadth first; a row's position counts within its tree."""
    batches, output = stored(partition, monkeypatch), FakeOutput()
    recalled(partition, partition.graph.stream(D))

    emit(
        [state_of(partition, logged(1, 11), logged(2, 12), derived=13)],
        (),
        Work((), TreeKey(3)),
        partition,
        output,
    )

    (batch,) = batches
    assert [(each.timestamp, each.offset, each.position) for each in batch.updates] == [
        (11, 1, 0),
        (13, 1, 1),
        (12, 2, 0),
    ]
    assert output.calls == [(3, [11, 13, 12])]
    assert (batch.first_offset, batch.next_offset) == (0, 3)
    assert partition.progress == TreeKey(3)


def test_pieces_of_several_tenants_are_one_stretch(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order of the log, as if it had been one piece; and nothing at all is one, too."""
    batches, output = stored(partition, monkeypatch), FakeOutput()
    one = state_of(partition, logged(1, 11), logged(4, 14))
    other = state_of(partition, logged(2, 12, E), logged(3, 13, E))

    emit([one, other], (), Work((), TreeKey(5)), partition, output)
    emit([], (), Work((), TreeKey(6)), partition, output)

    assert [each.offset for each in batches[0].updates] == [1, 2, 3, 4]
    assert output.calls == [(5, [11, 12, 13, 14]), (6, [])]
    assert {each.ref: last.timestamp for each, last in batches_last(partition).items()} == {
        D: 14,
        E: 13,
    }


def batches_last(partition: Partition) -> dict[KnownStream, LastUpdate]:
    """What the partition remembers of these streams."""
    streams = [partition.graph.stream(each) for each in (D, E)]
    known = recalled(partition, *streams)
    return {each: last for each in streams if (last := known[each.ref]) is not None}


def test_last_updates_are_remembered_and_their_states_stored(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last updates themselves are in the history."""
    batches = stored(partition, monkeypatch)
    d, c = (partition.graph.stream(each) for each in (D, C))
    recalled(partition, d)
    state = state_of(partition, logged(1, 7), logged(2, 5), derived=7, state=b"{}")

    emit([state], (), Work((), TreeKey(3)), partition, FakeOutput())

    assert [(each.stream_id, each.state) for each in batches[0].states] == [(c.stream_id, b"{}")]
    known = recalled(partition, d)
    assert known[D] == LastUpdate(7, document(7))
    assert known[C] == LastUpdate(7, document(7), b"{}")


def test_a_direct_write_leaves_the_state_as_it_is(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was made of nothing here."""
    batches = stored(partition, monkeypatch)
    state = BatchState(
        [logged(1, 9, C)],
        [[partition.graph.stream(C)]],
        {C: LastUpdate(7, document(7), b"{}")},
    )

    emit([state], (), Work((), TreeKey(2)), partition, FakeOutput())

    assert [each.state for each in batches[0].states] == [b"{}"]


def test_only_updates_newer_than_the_last_one_are_said_to_be_new(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a stream in which anything repeats are not: one may be the other's repeat."""
    batches = stored(partition, monkeypatch)
    times = ((1, 7, D), (2, 7, D), (3, 8, D), (4, 7, C), (5, 8, C))
    updates = [logged(*each) for each in times]
    recalled(partition, partition.graph.stream(D))

    emit([state_of(partition, *updates)], (), Work((), TreeKey(6)), partition, FakeOutput())

    assert [each.is_new for each in batches[0].updates] == [False, False, False, True, True]


def test_nothing_is_sent_that_is_not_stored(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fenced(_batch: Batch) -> None:
        raise Fenced("another worker has it")

    monkeypatch.setattr(partition.store, "store", fenced)
    output = FakeOutput()
    with pytest.raises(Fenced):
        emit([state_of(partition, logged(1, 1))], (), Work((), TreeKey(2)), partition, output)

    assert output.calls == []
    assert partition.progress == TreeKey(0)


@pytest.mark.parametrize(("timestamp", "waits"), [(4, True), (5, True), (6, False)])
def test_what_is_sent_is_acknowledged_before_it_may_be_stored_over(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, timestamp: int, waits: bool
) -> None:
    stored(partition, monkeypatch)
    output = FakeOutput()
    state = state_of(partition, logged(1, timestamp), before=LastUpdate(5, document(5)))

    emit([state], (), Work((), TreeKey(2)), partition, output)

    assert output.calls == ["flush"] * waits + [(2, [timestamp])]


def test_late_records_are_noted_when_all_of_them_is_acknowledged(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches, output = stored(partition, monkeypatch), FakeOutput()
    late = PutOff(1, 1, "so", b"")

    left = emit(
        [state_of(partition, logged(1, 1))],
        (),
        Work((), TreeKey(0), (), (late,)),
        partition,
        output,
    )

    assert list(batches[0].taken_up) == [TreeKey(1)]
    assert output.calls == []
    assert partition.emitted_late == []
    assert list(left) == []
    assert output.calls[-1] == "flush"
    assert partition.emitted_late == [TreeKey(1)]


def test_the_forwarded_records_of_the_stretch_are_noted_with_it(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = stored(partition, monkeypatch)

    emit(
        [state_of(partition)],
        (),
        Work((), TreeKey(9), forwarded=[Forwarded(8, 3, 20)]),
        partition,
        FakeOutput(),
    )

    assert batches[0].forwarded == {3: 20}


def test_a_bug_after_storing_is_tried_again_from_the_store(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As any other error it would be taken for one of a record, and stored a second time."""
    stored(partition, monkeypatch)

    def broken(*_arguments: object) -> None:
        raise Bug

    output = FakeOutput()
    monkeypatch.setattr(output, "emit", broken)
    with pytest.raises(Unavailable):
        emit([state_of(partition, logged(1, 1))], (), Work((), TreeKey(2)), partition, output)


def record(timestamp: int) -> Emission:
    found = EmittedRecord("so", "d", 1, 1, timestamp, msgspec.Raw(document(timestamp)))
    return emission(found)


def test_a_record_that_the_client_cannot_send_is_left_out_alone() -> None:
    output = FakeOutput(at2=Bug)

    send(output, 9, [record(timestamp) for timestamp in (1, 2, 3)])

    assert output.calls == [(0, [1]), (0, [3]), (9, [])]


def test_a_broker_that_is_away_is_not_taken_for_a_bug() -> None:
    output = FakeOutput(at2=Unavailable)

    with pytest.raises(Unavailable):
        send(output, 9, [record(timestamp) for timestamp in (1, 2, 3)])
    assert output.calls == []


def test_verdicts_are_one_row_of_each_kind_which_tells_the_last(partition: Partition) -> None:
    d, c = (partition.graph.stream(each) for each in (D, C))
    state = BatchState([], [], {})
    for at, kind, times in ((11, "emitted", 2), (12, "stale", 1), (13, "emitted", 1)):
        inputs = None if kind == "stale" else (at, 4)
        state.end([Verdict(c, kind, d, at, f"message {at}", inputs, times)])

    found = {
        each.verdict: (each.times, json.loads(each.last)) for each in rows.verdicts(state.endings)
    }

    assert found["emitted"][0] == 3
    assert found["stale"][0] == 1
    about = found["emitted"][1]
    assert (about["trigger"], about["timestamp"], about["version"]) == ("so/d", 13, 1)
    assert about["message"] == "message 13"
    assert about["inputs"] == {"d": 13, "c": 4}, "the own output as it stood then"
    assert found["stale"][1]["inputs"] == {}, "what is stale came to none"


def test_of_very_many_inputs_a_verdict_tells_the_first() -> None:
    inputs = {f"a rather long name of an input {number}": number for number in range(500)}

    short = rows._short(inputs)

    assert list(short)[:-1] == list(inputs)[: len(short) - 1]
    assert short["..."] == 500 - (len(short) - 1)
    assert len(json.dumps(short)) < 2 * rows.MAX_INPUTS_BYTES
