"""Every record goes to every subscriber of its stream, whatever the others hold or do."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

import msgspec
import pytest
from callback_receivers import a_feed
from emitted_records import Known
from support.delivery_stores import WAIT_SECONDS
from support.memory_feeds import USED_UP
from waiting import until

from delivery.byte_semaphore import ByteSemaphore
from delivery.callbacks.requests import outgoing
from delivery.cursors import Cursor
from delivery.endings import Ending
from delivery.fanout import FanOut, LiveUpdate, live_update
from delivery.lanes import OFFERS_A_TURN
from servioticy.domain.model import StreamRef
from servioticy.domain.records import ConsumedRecord, EmittedRecord, Position, UnreadableRecord

FLOW, OTHER = StreamRef("pump", "flow"), StreamRef("lamp", "state")
FIRST = Position(0, 0)


@dataclass
class Recorder:
    fails: bool = False
    got: list[bytes] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    ending: Ending | None = None
    tenant: int = 1
    takes_later: bool = False

    def offer(self, live: LiveUpdate) -> None:
        if self.fails:
            raise RuntimeError("its socket is not what it seems")
        self.got.append(live.update.document)
        self.positions.append(live.position)

    def close(self, ending: Ending) -> None:
        self.ending = ending


def test_an_update_keeps_the_trace_context_of_its_record() -> None:
    """Feeds give it on, and callbacks send it."""
    context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    known = a_record(b"{}").record
    live = live_update(msgspec.structs.replace(known, trace=context), FIRST)
    assert live is not None
    feed = a_feed()
    feed.offer(live)
    delivery = asyncio.run(feed.take_patiently())

    assert (live.trace, delivery.trace) == (context, context)
    assert outgoing(delivery).trace == context


def a_record(
    document: bytes,
    stream: StreamRef = FLOW,
    at: int = 1,
    position: Position = FIRST,
) -> ConsumedRecord:
    name, raw = stream.service_object, msgspec.Raw(document)
    return Known(EmittedRecord(name, stream.stream, 1, 1, at, raw), position)


def published(
    recorders: dict[StreamRef, list[Recorder]], *batches: list[ConsumedRecord]
) -> Cursor:
    """Publish from a thread, as the reader does, and wait until all of it is offered."""

    async def run() -> Cursor:
        semaphore = ByteSemaphore(1000, 100)
        fanout = FanOut(lambda stream: recorders.get(stream, []), semaphore)
        fanout.start()
        for batch in batches:
            await asyncio.to_thread(fanout.publish, batch)
        while fanout._batches or fanout._work is not None:
            await asyncio.sleep(0)
        assert semaphore.acquire(1000)  # all was released
        return fanout.cursor

    return asyncio.run(run())


def test_updates_read_and_offered_are_counted() -> None:
    recorders = {FLOW: [Recorder(), Recorder(), Recorder(fails=True)]}
    fanout = FanOut(lambda stream: recorders.get(stream, []), ByteSemaphore(1000, 100))

    async def run() -> None:
        fanout.start()
        await asyncio.to_thread(fanout.publish, [a_record(b"{}"), a_record(b"{}", OTHER)])
        while fanout._batches or fanout._work is not None:
            await asyncio.sleep(0)

    asyncio.run(run())
    assert (fanout.records_read, fanout.updates_offered) == (2, 2)


def test_who_has_used_up_its_deliveries_is_told_so_and_others_notice_nothing() -> None:
    """What keeps it for later is offered it all the same, and counts when it is taken."""
    mine, others, later = Recorder(tenant=7), Recorder(tenant=8), Recorder(tenant=7)
    later.takes_later = True
    noted: list[tuple[int, int, StreamRef]] = []

    async def run() -> None:
        semaphore, all_ = ByteSemaphore(1000, 100), [mine, later, others]
        fanout = FanOut(lambda _stream: all_, semaphore, note=lambda *what: noted.append(what))
        fanout.resting.change({7: USED_UP})
        fanout.start()
        await asyncio.to_thread(fanout.publish, [a_record(b"{}")])
        while fanout._batches or fanout._work is not None:
            await asyncio.sleep(0)

    asyncio.run(run())
    assert (mine.got, mine.ending) == ([], Ending.QUOTA_USED_UP)
    assert (others.got, others.ending) == ([b"{}"], None)
    assert (later.got, later.ending) == ([b"{}"], None)
    assert noted == [(8, 1, FLOW)]


UGLY = {
    "invalid UTF-8": b'{"v":"\xff\xfe"}',
    "a surrogate in UTF-8": b'{"v":"\xed\xa0\x80"}',
    "cut off inside a character": b'{"v":"\xc3',
    "empty": b"",
    "null": b"null",
    "a number": b"1e999",
    "an array": b"[[[[[[",
}
ODD = {
    "half a surrogate pair, escaped": rb'{"v":"\ud800"}',
    "the other half": rb'{"v":"\udfff\ud800"}',
    "NUL, escaped": rb'{"v":"\u0000"}',
    "a number beyond all": b'{"v":1e999,"w":' + b"9" * 5000 + b"}",
    "deep": b'{"v":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "huge": b'{"v":"' + b"x" * 5_000_000 + b'"}',
}


@pytest.mark.parametrize("document", UGLY.values(), ids=UGLY)
def test_a_record_that_is_no_update_is_dropped_alone(document: bytes) -> None:
    """A client could not read it; a frame that is not UTF-8 would even end its socket."""
    flow, other = Recorder(), Recorder()
    published(
        {FLOW: [flow], OTHER: [other]},
        [a_record(b"{}"), a_record(document), a_record(b'{"v":2}')],
        [a_record(b'{"v":3}', OTHER)],
    )

    assert flow.got == [b"{}", b'{"v":2}']
    assert other.got == [b'{"v":3}']


@pytest.mark.parametrize("document", ODD.values(), ids=ODD)
def test_an_odd_update_arrives_as_it_was_emitted(document: bytes) -> None:
    flow = Recorder()
    published({FLOW: [flow]}, [a_record(document)])

    assert flow.got == [document]


def test_names_and_times_of_any_kind_stop_nothing() -> None:
    """The record's envelope comes from outside as well."""
    odd = StreamRef("\ud800", "\0")
    recorder, flow = Recorder(), Recorder()
    published(
        {odd: [recorder], FLOW: [flow]},
        [
            a_record(b"\xff", odd),
            a_record(b"{}", odd, at=10**400),
            a_record(b"{}", StreamRef("", ""), at=-(10**400)),
            a_record(b"{}"),
        ],
    )

    assert (recorder.got, flow.got) == ([b"{}"], [b"{}"])


def test_a_recorder_that_fails_is_closed_and_costs_the_others_nothing() -> None:
    before, failing, after = Recorder(), Recorder(fails=True), Recorder()
    published({FLOW: [before, failing, after]}, [a_record(b"{}"), a_record(b'{"v":1}')])

    assert failing.ending is Ending.FAILED
    assert before.ending is after.ending is None
    assert before.got == after.got == [b"{}", b'{"v":1}']


def test_batches_keep_their_order_while_the_loop_is_left_to_others(monkeypatch) -> None:
    """A slice of no length: the loop turns after every single offer."""
    monkeypatch.setattr("delivery.fanout.SLICE_SECONDS", 0.0)
    one, two = Recorder(), Recorder()
    batches = [[a_record(b'{"v":%d}' % (10 * n + k)) for k in range(10)] for n in range(20)]
    published({FLOW: [one, two]}, *batches)

    assert one.got == two.got == [b'{"v":%d}' % n for n in range(200)]


def test_every_update_comes_with_its_position_and_all_are_passed() -> None:
    """Somebody who goes away has to know from where to read on: unreadable records count."""
    flow = Recorder()
    positions = [Position(0, 7), Position(1, 3), Position(0, 8), Position(0, 9)]
    documents = [b"{}", b"{}", b"{}", b"no update"]
    batch = [a_record(each, position=at) for each, at in zip(documents, positions, strict=True)]
    cursor = published({FLOW: [flow]}, batch)

    assert flow.positions == positions[:3]
    assert cursor.next_offsets() == {0: 10, 1: 4}


def test_publish_waits_while_more_bytes_are_on_their_way_than_there_is_room_for() -> None:
    async def run() -> list[bool]:
        semaphore = ByteSemaphore(100, 100)
        fanout = FanOut(lambda _stream: [], semaphore)
        fanout.start()
        published: list[bool] = []

        def publish() -> None:
            for _ in range(3):
                fanout.publish([a_record(b"x" * 60)])
                published.append(True)

        thread = threading.Thread(target=publish, daemon=True)
        thread.start()
        until(lambda: semaphore.waiting)  # the loop does not turn meanwhile
        before_it_waited = list(published)
        await asyncio.to_thread(thread.join, WAIT_SECONDS)
        assert len(published) == 3
        return before_it_waited

    assert asyncio.run(run()) == [True]


def test_publish_does_not_wait_for_a_server_that_has_stopped() -> None:
    async def run() -> None:
        fanout = FanOut(lambda _stream: [], ByteSemaphore(1, 1))
        fanout.start()
        fanout.stop()
        await asyncio.wait_for(
            asyncio.to_thread(fanout.publish, [a_record(b"{}")] * 3), WAIT_SECONDS
        )

    asyncio.run(run())


class Counted(Recorder):
    """Notes how many offers there were before each of its own."""

    def __init__(self, all_: list[int], tenant: int) -> None:
        super().__init__(tenant=tenant)
        self.all = all_

    def offer(self, live: LiveUpdate) -> None:
        self.all.append(self.tenant)
        super().offer(live)


def offered(fanout: FanOut, *batches: list[ConsumedRecord]) -> None:
    async def run() -> None:
        fanout.start()
        for batch in batches:
            await asyncio.to_thread(fanout.publish, batch)
        while fanout._batches or fanout._work is not None:
            await asyncio.sleep(0)

    asyncio.run(run())


def test_an_update_for_twenty_thousand_of_one_tenant_holds_up_no_others() -> None:
    """The other tenant's update comes after it, and is offered some offers later."""
    all_: list[int] = []
    many = [Counted(all_, 1) for _ in range(20_000)]
    other = Counted(all_, 2)
    by_stream: dict[StreamRef, list[Counted]] = {FLOW: many, OTHER: [other]}
    fanout = FanOut(lambda stream: by_stream[stream])
    second = a_record(b"{}", OTHER, position=Position(0, 1))
    offered(fanout, [a_record(b"{}"), second])

    assert len(all_) == 20_001
    assert all_.index(2) <= 2 * OFFERS_A_TURN
    assert all(each.got == [b"{}"] for each in many)


def test_what_one_subscriber_gets_is_in_order_whatever_the_others_have_to_get() -> None:
    all_: list[int] = []
    recorders = [Counted(all_, tenant) for tenant in (1, 1, 1, 2, 3) for _ in range(50)]
    fanout = FanOut(lambda _stream: recorders)
    batches = [
        [a_record(b'{"n":%d}' % n, position=Position(0, n)) for n in range(at, at + 10)]
        for at in (0, 10, 20)
    ]
    offered(fanout, *batches)

    for each in recorders:
        assert each.positions == [Position(0, n) for n in range(30)]
    assert fanout.cursor.next_offsets() == {0: 30}


def test_the_cursor_stands_before_what_is_not_offered_to_all() -> None:
    """Who goes on from there misses nothing, though others have got what follows."""
    all_: list[int] = []
    by_stream = {FLOW: [Counted(all_, 1) for _ in range(1_000)], OTHER: [Counted(all_, 2)]}
    fanout = FanOut(lambda stream: by_stream[stream])
    stood: list[tuple[int, dict[int, int]]] = []
    by_stream[OTHER][0].offer = lambda live: stood.append(  # type: ignore[method-assign]
        (len(all_), fanout.cursor.next_offsets())
    )
    offered(fanout, [a_record(b"{}"), a_record(b"{}", OTHER, position=Position(0, 1))])

    ((before, cursor),) = stood
    assert before < 1_000
    assert cursor == {}
    assert fanout.cursor.next_offsets() == {0: 2}


def test_a_tenant_for_whom_too_much_waits_is_closed_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many as may wait do; those of the next update have to come again."""
    monkeypatch.setattr("delivery.lanes.MOST_WAITING", 100)
    mine, other = [Recorder(tenant=1) for _ in range(101)], Recorder(tenant=2)
    fanout = FanOut(lambda _stream: [*mine, other])
    offered(fanout, [a_record(b"{}", position=Position(0, n)) for n in range(2)])
    assert {each.ending for each in mine} == {None}

    offered(fanout, [a_record(b"{}", position=Position(0, n)) for n in range(2, 5)])
    assert {each.ending for each in mine} == {Ending.READS_TOO_SLOWLY}
    assert (len(other.got), other.ending) == (5, None)


class Unread:
    """A record that only counts how often it is read."""

    stream, position, size = FLOW, FIRST, 1
    times = 0

    def read(self) -> EmittedRecord:
        self.times += 1
        raise UnreadableRecord("nobody should")


def test_a_record_that_nobody_watches_is_not_read_and_is_passed_all_the_same() -> None:
    """Its key tells of which stream it is; most of what is emitted has no watcher here."""
    unread = Unread()

    cursor = published({OTHER: [Recorder()]}, [unread])

    assert unread.times == 0
    assert cursor.has_passed(FIRST)


def test_a_record_that_cannot_be_read_costs_the_others_nothing() -> None:
    flow = Recorder()

    published({FLOW: [flow]}, [Unread(), a_record(b"{}")])

    assert flow.got == [b"{}"]
