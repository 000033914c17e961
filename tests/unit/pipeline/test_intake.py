"""Intake by itself: what each record of the log is to its partition."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from engine_builders import D, document
from memory import MemoryPlatform
from oracle import Object
from serial_order import define

from pipeline.batching.dead_letters import DeadLetters
from pipeline.batching.intake import Intake
from pipeline.state.partition import Partition
from pipeline.work import Forwarded, LoggedUpdate, Root, Row
from sandbox import argument_names
from servioticy.domain.records import (
    DeletionRecord,
    EndRecord,
    LogRecord,
    ReleaseRecord,
    Source,
    UpdateRecord,
    write,
)
from servioticy.domain.topics import MAX_MESSAGE_BYTES
from servioticy.errors import Unavailable
from servioticy.ports.put_off import PutOff, TreeKey


class World:
    """Partition 0 of two, where `so` is computed; `moved` is computed in partition 1."""

    def __init__(self) -> None:
        self.platform = MemoryPlatform(2)
        self.tenant = (
            self.platform.tenants.tenant_of(self.platform.tenants.create_tenant("t")) or 0
        )
        for id_ in ("so", "moved", "deleted"):
            define(Object(id_, ("d",), ()), {}, self.tenant, self.platform)
        objects = self.platform.state.service_objects
        for kept in objects.values():
            kept.active_version, kept.owner_partition = 1, 0
        objects["moved"].owner_partition = 1
        objects["deleted"].deleted_at, objects["deleted"].active_version = 1, None
        for log in self.platform.state.log:
            log.clear()
        self.output = self.platform.output(0)
        store = self.platform.partition_store(argument_names)
        self.partition = Partition(0, store, 10**6)
        passes = (Unavailable,)
        self.dead_letters = DeadLetters(0, self.output, passes)
        self.intake = Intake(self.partition, self.output, self.dead_letters, passes)

    def admit(self, record: LogRecord, offset: int = 5, *, late: bool = False) -> Any:
        """What the record is; None where it is nothing."""
        row = Row(offset, write(record))
        if late:
            put_off = PutOff(offset, self.tenant, "", write(record))
            return self.intake.admit_late(put_off, self.intake.read(row))
        found = self.intake.admit(row, self.intake.read(row))
        assert len(found) <= 1
        return found[0] if found else None

    @property
    def reasons(self) -> list[tuple[int, str]]:
        """Offsets and reasons of the dead letters."""
        return [(each.offset, each.reason) for each in self.platform.state.dead_letters]


@pytest.fixture
def world() -> World:
    return World()


def an_update(id_: str = "so", stream: str = "d", **named: Any) -> UpdateRecord:
    return UpdateRecord(id_, stream, 7, msgspec.Raw(document(7)), **named)


def test_an_update_of_a_stream_that_is_computed_here_is_to_be_computed(world: World) -> None:
    found = world.admit(an_update())

    record = write(an_update())
    assert found == LoggedUpdate(5, world.tenant, [Root(D, 7, document(7))], record)
    assert (found.key, found.size, found.service_objects) == (
        TreeKey(5),
        len(document(7)),
        ("so",),
    )
    assert found.as_put_off() == PutOff(5, world.tenant, "so", record)


def test_a_control_record_is_itself(world: World) -> None:
    record = DeletionRecord("so")

    assert world.admit(record) == record
    assert world.intake.tenant_changing(record) == world.tenant
    assert world.intake.tenant_changing(ReleaseRecord(("so",), 1)) is None


@pytest.mark.parametrize("value", [None, b"", b"no JSON", b'{"kind":"unheard of"}'])
def test_what_cannot_be_read_is_a_dead_letter(world: World, value: bytes | None) -> None:
    assert world.intake.read(Row(5, value)) is None
    ((offset, reason),) = world.reasons
    assert offset == 5
    assert reason.startswith("unreadable: ")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (an_update(stream="nothing"), "unknown stream so/nothing"),
        (an_update("nobody"), "unknown stream nobody/d"),
        (an_update("deleted"), "deleted stream deleted/d"),
    ],
)
def test_an_update_of_no_stream_is_a_dead_letter(
    world: World, record: UpdateRecord, reason: str
) -> None:
    assert world.admit(record) is None
    assert world.reasons == [(5, reason)]


def test_an_update_of_what_has_moved_is_forwarded_with_the_place_it_came_from(
    world: World,
) -> None:
    assert world.admit(an_update("moved")) is None

    ((_offset, found),) = world.platform.records(1)
    assert found == an_update("moved", forwarded=(0, 5))


def test_a_forwarded_record_is_taken_once(world: World) -> None:
    first = world.admit(an_update(forwarded=(1, 3)), 5)
    again = world.admit(an_update(forwarded=(1, 3)), 6)
    later = world.admit(an_update(forwarded=(1, 4)), 7)

    assert isinstance(first, LoggedUpdate)
    assert again is None
    assert isinstance(later, LoggedUpdate)
    assert world.intake.pop_forwarded(9) == [Forwarded(5, 1, 4), Forwarded(7, 1, 5)]
    assert world.intake.pop_forwarded(9) == []


def test_one_that_was_put_off_is_not_taken_for_a_repeat(world: World) -> None:
    world.admit(an_update(forwarded=(1, 9)), 5)

    assert isinstance(world.admit(an_update(forwarded=(1, 3)), 4, late=True), LoggedUpdate)


def test_what_was_forwarded_from_a_log_that_is_gone_is_no_repeat(world: World) -> None:
    """Its place is below zero: a restore has left repeats out. Nothing is noted of it."""
    control = EndRecord(Source(1, -9), 1, 1, ("so1",), (), None, (1, -3))
    row = Row(5, write(control))

    assert not world.intake.is_repeat(control, row)
    assert not world.intake.is_repeat(control, row)
    assert world.intake.pop_forwarded(9) == []


def test_one_that_was_put_off_is_forwarded_without_its_place(world: World) -> None:
    """There it would be behind others that were forwarded meanwhile, and left out."""
    world.admit(an_update("moved"), 5, late=True)

    ((_offset, found),) = world.platform.records(1)
    assert found == an_update("moved")


def test_an_update_waits_where_the_change_that_declares_its_stream_may_wait(world: World) -> None:
    world.partition.waiting[world.tenant] = 1

    found = world.admit(an_update(stream="new"))

    assert found == PutOff(5, world.tenant, "so", write(an_update(stream="new")))
    assert world.admit(an_update(stream="new"), late=True) is None
    assert world.reasons == [(5, "unknown stream so/new")]


def test_what_is_too_large_to_be_forwarded_is_a_dead_letter(world: World) -> None:
    large = UpdateRecord("moved", "d", 7, msgspec.Raw(b'{"x":"%s"}' % (b"x" * MAX_MESSAGE_BYTES)))

    assert world.admit(large) is None
    ((_offset, reason),) = world.reasons
    assert reason.startswith("not forwarded: ")


def test_a_bug_costs_the_record_that_met_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_id: str, *, at_once: bool) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(world.partition, "service_object", broken)

    assert world.admit(an_update()) is None
    assert world.reasons == [(5, "failed: ZeroDivisionError: ours")]


def test_what_waiting_heals_costs_nothing(world: World) -> None:
    world.platform.state.postgres_answers = False

    with pytest.raises(Unavailable):
        world.admit(an_update())
    assert world.reasons == []


def test_a_dead_letter_that_meets_a_bug_is_named_in_an_event(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_letter: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(world.output, "dead_letter", broken)

    world.dead_letters.add(Row(5, b"x"), "why")

    (event,) = [each for each in caplog.records if each.message == "dead_letter_failed"]
    assert (event.offset, event.reason) == (5, "why")  # type: ignore[attr-defined]
