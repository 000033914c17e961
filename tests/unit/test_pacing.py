"""Much comes into the log no faster than it is worked on: others stand behind it there."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from support.delivery_stores import Catalog
from support.played_ingest import AWAY, PlayedIngest
from waiting import until

from ingest import pacing as rules
from ingest.pacing import (
    ACTIVE_SECONDS,
    AT_ONCE,
    LEAST,
    MAX_SECONDS,
    MAX_TENANTS,
    Pacing,
)
from ingest.progress import Awaited, Ended, How
from ingest.updates import LARGE_BYTES, Offered, Outcome, Sent, Taken, Unread, weight
from servioticy.domain.batches.items import Item
from servioticy.domain.contested import CONTESTED_SECONDS
from servioticy.domain.model import SensorUpdate, StreamRef, Timestamp
from servioticy.errors import Unavailable
from servioticy.ports.addresses import Address

FLOW = StreamRef("pump", "flow")
UPDATE = b'{"channels":{"v":{"current-value":1}},"lastUpdate":%d}'
OTHER = 99


def an_address(tenant: int = 1, partition: int = 0) -> Address:
    return Address(tenant, "pump", tenant, False, 1, partition, 1)


def an_update(at: int, size: int = 0) -> bytes:
    return (UPDATE % at).ljust(size)


class Waits:
    """Notes when it is waited; somebody else sends to these partitions."""

    def __init__(self, *shared: int) -> None:
        self.asked: list[list[Awaited]] = []
        self.now = 100.0
        self.takes = 0.0
        """seconds until all is worked on"""
        self.pacing = Pacing(self.wait, lambda: self.now)
        self.pacing.saw(shared, OTHER)

    def wait(self, awaited: Collection[Awaited]) -> Sequence[Ended]:
        self.asked.append(sorted(awaited))
        took = min(self.takes, MAX_SECONDS)
        self.now += took
        how = How.STORED if took == self.takes else How.BEHIND
        return [Ended(how, at_once=not took)] * len(awaited)

    def sends(self, number: int, tenant: int = 1, *partitions: int) -> int:
        """Send a part that weighs so much; return how much it might have weighed."""
        addresses = [an_address(tenant, each) for each in partitions or (0,)]
        with self.pacing.turn(addresses) as turn:
            turn.appended = number
            return turn.most


def test_who_sends_little_waits_for_nothing_and_every_thousand_are_waited_for() -> None:
    """However they are cut into parts, the next one waits for those before."""
    waits = Waits(0, 3)
    for _ in range(AT_ONCE - 1):
        waits.sends(1)
    assert waits.sends(1, 1, 0, 3) == 1
    assert waits.asked == []

    waits.sends(AT_ONCE - 1)
    assert waits.asked == [[Awaited(0, 1), Awaited(3, 1)]]
    waits.sends(1)
    assert len(waits.asked) == 1


def test_what_comes_at_once_takes_a_slice_of_time() -> None:
    """Fewer where a thousand took longer, and more again where they do not."""
    waits = Waits(0)
    assert waits.sends(AT_ONCE) == AT_ONCE
    waits.takes = 4 * CONTESTED_SECONDS
    assert waits.sends(AT_ONCE // 4 - 1) == AT_ONCE / 4
    assert waits.sends(0, 2) == AT_ONCE
    assert waits.sends(1) == 1
    assert len(waits.asked) == 1
    waits.takes = CONTESTED_SECONDS
    assert waits.sends(AT_ONCE // 4) == AT_ONCE / 4, "that is what fits"
    waits.takes = 0
    assert waits.sends(AT_ONCE // 2) == AT_ONCE / 2
    waits.takes = 1.0
    assert waits.sends(1) == LEAST > AT_ONCE / 2 * CONTESTED_SECONDS / MAX_SECONDS
    waits.sends(AT_ONCE)
    assert waits.sends(1) == AT_ONCE * CONTESTED_SECONDS / MAX_SECONDS
    waits.sends(LEAST)
    waits.sends(AT_ONCE // 5)
    assert waits.sends(1) == LEAST
    waits.now += ACTIVE_SECONDS
    assert waits.sends(1) == AT_ONCE, "it is alone"


def test_what_was_worked_on_before_it_was_looked_tells_nothing_of_how_long_it_took() -> None:
    """Who pauses is not slow."""
    waits = Waits(0)
    waits.sends(AT_ONCE)
    waits.now += 1.0

    assert waits.sends(1) == AT_ONCE
    assert len(waits.asked) == 1


@pytest.mark.parametrize("how", [How.UNKNOWN, How.LOST])
def test_who_gets_no_answer_goes_on_and_has_learned_nothing(how: How) -> None:
    pacing = Pacing(lambda _awaited: [Ended(how)])
    pacing.saw([0], OTHER)

    for _ in range(3):
        with pacing.turn([an_address()]) as turn:
            assert turn.most == AT_ONCE
            turn.appended = AT_ONCE


def test_each_tenant_waits_for_its_own() -> None:
    waits = Waits(0)
    for tenant in (1, 2):
        waits.sends(AT_ONCE - 1, tenant)
    with waits.pacing.turn([]):
        pass
    waits.sends(1, 2)
    assert waits.asked == []

    waits.sends(1, 2)
    assert waits.asked == [[Awaited(0, 2)]]


def test_of_many_tenants_those_are_forgotten_that_have_sent_nothing_for_longest() -> None:
    waits = Waits(0)
    for tenant in range(MAX_TENANTS + 1):
        waits.sends(AT_ONCE, tenant)
    waits.sends(1, 0)
    assert waits.asked == []

    waits.sends(1, MAX_TENANTS)
    assert len(waits.asked) == 1


def test_who_is_alone_in_a_partition_waits_for_nothing() -> None:
    """Time that nobody else wants is free, and what only one sends stands in nobody's way."""
    waits = Waits(3)
    for _ in range(3):
        waits.sends(AT_ONCE, 1, 0, 5)
    assert waits.asked == []

    waits.pacing.saw([0], OTHER)
    for _ in range(2):
        waits.sends(AT_ONCE, 1, 0, 5)
    assert waits.asked == [[Awaited(0, 1)]]


def test_who_sends_by_another_process_is_there_too() -> None:
    """The API does not see whom the broker lets send to the same partition, nor the other way."""
    asked: list[Collection[Awaited]] = []

    def wait(awaited: Collection[Awaited]) -> Sequence[Ended]:
        asked.append(set(awaited))
        return [Ended(How.STORED, at_once=True)]

    now = 100.0
    pacing = Pacing(wait, lambda: now, {0: 95.0, 1: 80.0}.__getitem__)
    for _ in range(2):
        with pacing.turn([an_address(), an_address(partition=1)]) as turn:
            turn.appended = AT_ONCE

    assert asked == [{Awaited(0, 1)}]
    now += ACTIVE_SECONDS
    with pacing.turn([an_address()]) as turn:
        turn.appended = AT_ONCE
    assert len(asked) == 1


def test_others_are_there_for_a_while_and_however_often_the_tenant_sends() -> None:
    waits = Waits(0)
    for _ in range(4):
        waits.sends(AT_ONCE)
    assert len(waits.asked) == 3

    waits.now += ACTIVE_SECONDS
    waits.sends(AT_ONCE)
    assert len(waits.asked) == 4
    waits.now += 0.1
    waits.sends(AT_ONCE)
    assert len(waits.asked) == 4


# Turns


class Parts:
    """Parts of several connections, each in a thread, which append when the test says so."""

    def __init__(self, pacing: Pacing) -> None:
        self.pacing = pacing
        self.inside: list[str] = []
        """Those that have had their turn."""
        self.go_on = {name: threading.Event() for name in "abcd"}
        self._threads = ThreadPoolExecutor(len(self.go_on))

    def begin(self, name: str, tenant: int = 1, error: Exception | None = None) -> Future[None]:
        """Begin a part, and return when it has its turn or waits for it."""

        def append() -> None:
            with self.pacing.turn([an_address(tenant)]):
                self.inside.append(name)
                assert self.go_on[name].wait(60)
                if error is not None:
                    raise error

        before = self.waiting(tenant)
        part = self._threads.submit(append)
        until(lambda: name in self.inside or self.waiting(tenant) > before or part.done())
        return part

    def waiting(self, tenant: int) -> int:
        own = self.pacing._tenants.get(tenant)
        return 0 if own is None else len(own.places)

    def stop(self) -> None:
        for each in self.go_on.values():
            each.set()
        self._threads.shutdown()


@pytest.fixture
def parts() -> Iterator[Parts]:
    found = Parts(Waits(0).pacing)
    yield found
    found.stop()


def test_parts_of_one_tenant_come_one_at_a_time_over_all_its_connections(parts: Parts) -> None:
    first, second, third = (parts.begin(each) for each in "abc")
    assert parts.inside == ["a"]

    for name, part in (("a", first), ("b", second), ("c", third)):
        parts.go_on[name].set()
        part.result(60)
    assert parts.inside == ["a", "b", "c"]
    assert parts.waiting(1) == 0


def test_another_tenant_waits_for_nobody_s_turn_but_its_own(parts: Parts) -> None:
    first, second = parts.begin("a"), parts.begin("b")
    parts.go_on["c"].set()

    parts.begin("c", 2).result(60)

    assert parts.inside == ["a", "c"]
    for name in "ab":
        parts.go_on[name].set()
    first.result(60)
    second.result(60)


def test_connections_of_who_is_alone_send_beside_each_other() -> None:
    parts = Parts(Waits(5).pacing)
    both = [parts.begin(each) for each in "ab"]

    until(lambda: sorted(parts.inside) == ["a", "b"])
    parts.stop()
    for each in both:
        each.result(60)


def test_an_error_gives_the_turn_to_the_next(parts: Parts) -> None:
    first, second = parts.begin("a", error=AWAY), parts.begin("b")
    for name in "ab":
        parts.go_on[name].set()

    with pytest.raises(Unavailable):
        first.result(60)
    second.result(60)
    assert parts.inside == ["a", "b"]


def test_who_leaves_while_it_waits_gives_its_place_to_those_behind(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is told next is one who still waits: else all behind would wait for ever."""
    first = parts.begin("a")
    monkeypatch.setattr(rules, "TURN_SECONDS", 0.2)
    second = parts.begin("b")
    monkeypatch.undo()
    third = parts.begin("c")
    with pytest.raises(Unavailable):
        second.result(60)

    for name in "abc":
        parts.go_on[name].set()
    first.result(60)
    third.result(60)
    assert parts.inside == ["a", "c"]


# What goes by it


def the_way(*shared: int) -> tuple[PlayedIngest, Waits]:
    waits = Waits(*shared)
    way = PlayedIngest(Catalog(), waits.pacing, updates=10**9, bytes=10**9)
    way.documents.document = {"streams": {"flow": {"channels": {"v": {"type": "number"}}}}}
    return way, waits


def taken_from(way: PlayedIngest, body: bytes, *, patient: bool = True) -> Outcome:
    return way.ingest.take([Sent("token-1", [Offered(FLOW, body)])], patient=patient)[0][0]


def an_item(at: int) -> Item:
    update = SensorUpdate(FLOW, Timestamp(at), UPDATE % at)
    return Item(at, FLOW, lambda _reader: update)


def test_an_update_of_16_kib_waits_and_one_of_a_byte_less_does_not() -> None:
    """A thousand small ones are many devices; for a large one the others would wait."""
    way, _waits = the_way(0)
    assert isinstance(taken_from(way, an_update(1)), Taken)  # the document is read by now

    small = taken_from(way, an_update(2, LARGE_BYTES - 1), patient=False)
    large = taken_from(way, an_update(3, LARGE_BYTES), patient=False)

    assert LARGE_BYTES == 16 * 1024
    assert isinstance(small, Taken)
    assert isinstance(large, Unread)
    assert len(way.log.came) == 2
    assert isinstance(taken_from(way, an_update(3, LARGE_BYTES)), Taken)


def test_with_something_large_all_of_a_sender_waits_and_keeps_its_order() -> None:
    way, _waits = the_way(0)
    bodies = [an_update(1), an_update(2, LARGE_BYTES), an_update(3)]
    mine = Sent("token-1", [Offered(FLOW, each) for each in bodies])
    others = Sent("token-2", [Offered(FLOW, an_update(4))])
    taken_from(way, an_update(0))

    found = way.ingest.take([mine, others])
    assert [type(each) for each in found[0]] == [Unread] * 3
    assert isinstance(found[1][0], Taken)
    way.ingest.take([mine], patient=True)

    came = [each.body.rstrip() for each in way.log.came]
    assert came == [UPDATE % at for at in (0, 4, 1, 2, 3)]


def test_what_is_large_weighs_by_its_bytes_by_whatever_way_it_comes() -> None:
    """One for each update, and for each KiB."""
    assert weight(1, 1023) == 1
    assert weight(1, 1024) == 2
    way, waits = the_way(0)
    value = b'"%s"' % (b"x" * 900_000)
    way.documents.document = {"streams": {"flow": {"channels": {"v": {"type": "string"}}}}}
    body = (UPDATE % 1).replace(b"1}}", value + b"}}")
    assert weight(1, len(body)) < AT_ONCE
    patient = taken_from(way, body)
    assert isinstance(patient, Taken)
    way.ingest.take_one(patient.address, Offered(FLOW, body))
    assert waits.asked == []

    way.ingest.take_one(patient.address, Offered(FLOW, body))

    assert len(waits.asked) == 1
    way.ingest.take_one(patient.address, Offered(FLOW, body.replace(value, b'"small"')))
    taken_from(way, body)
    assert len(waits.asked) == 1


def test_whoever_sends_by_whichever_way_is_seen() -> None:
    """A PUT is enough: what is sent so stands behind batches."""
    way, waits = the_way()
    outcome = taken_from(way, an_update(1))
    assert isinstance(outcome, Taken)
    mine = outcome.address
    others = mine._replace(caller=OTHER, owner=OTHER)
    for _ in range(2):
        with waits.pacing.turn([mine]) as turn:
            turn.appended = AT_ONCE
    assert waits.asked == []

    for _ in range(2):
        with waits.pacing.turn([others]) as turn:
            turn.appended = AT_ONCE
    assert len(waits.asked) == 1


def test_a_long_batch_comes_in_parts_and_each_waits_for_the_one_before() -> None:
    """A body holds many thousands: appended at once all others would stand behind them."""
    there: list[int] = []

    def wait(_awaited: Collection[Awaited]) -> Sequence[Ended]:
        there.append(len(way.log.came))
        return ()

    pacing = Pacing(wait)
    way = PlayedIngest(Catalog(), pacing)
    pacing.saw([0], OTHER)
    number = 2 * AT_ONCE + 1
    items = [an_item(at) for at in range(number)]

    found = way.ingest.take_batch(items, {FLOW: an_address()})

    assert there == [AT_ONCE, 2 * AT_ONCE]
    assert [each.body for each in way.log.came] == [UPDATE % at for at in range(number)]
    assert len(found.accepted) == number


class Killed(BaseException):
    """The process is no more."""


@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("when", ["before", "after"])
def test_whenever_it_is_killed_all_that_was_acknowledged_is_in_the_log(
    at: int, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And whoever waited behind has the turn, where only the one request died."""
    way, _waits = the_way(0)
    address = an_address()
    append, calls = way.log.append_all, 0

    def falling(records: Sequence[object]) -> None:
        nonlocal calls
        calls += 1
        if when == "after" or calls != at + 1:
            append(records)  # type: ignore[arg-type]
        if calls == at + 1:
            raise Killed

    monkeypatch.setattr(way.log, "append_all", falling)
    acknowledged: list[bytes] = []
    items = [an_item(number) for number in range(2 * AT_ONCE)]
    try:
        body = an_update(9_000, LARGE_BYTES)
        acknowledged.append(way.ingest.take_one(address, Offered(FLOW, body)).document)
        found = way.ingest.take_batch(items, {FLOW: address})
        acknowledged += [each.update.document for each in found.accepted]
        body = an_update(9_001, LARGE_BYTES)
        acknowledged.append(way.ingest.take_one(address, Offered(FLOW, body)).document)
    except Killed:
        pass

    assert {each.strip() for each in acknowledged} <= {each.strip() for each in way.log.updates}
    assert calls == at + 1
    assert isinstance(taken_from(way, an_update(9_002, LARGE_BYTES)), Taken)
