"""Every record to every listener of its stream, whatever the others hold or do."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

import msgspec
import pytest

from delivery.fanout import FanOut
from delivery.room import Room
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.records import EmittedRecord

FLOW, OTHER = StreamRef("pump", "flow"), StreamRef("lamp", "state")


@dataclass
class Listener:
    fails: bool = False
    got: list[bytes] = field(default_factory=list)
    failed: bool = False

    def offer(self, update: LastUpdate, version: int) -> None:
        if self.fails:
            raise RuntimeError("its socket is not what it seems")
        self.got.append(update.document)

    def fail(self) -> None:
        self.failed = True


def a_record(document: bytes, stream: StreamRef = FLOW, at: int = 1) -> EmittedRecord:
    return EmittedRecord(stream.service_object, stream.stream, 1, 1, at, msgspec.Raw(document))


def published(listeners: dict[StreamRef, list[Listener]], *batches: list[EmittedRecord]) -> None:
    """Publish from a thread, as the reader does, and wait until all of it is offered."""

    async def run() -> None:
        room = Room(1000, 100)
        fanout = FanOut(lambda stream: listeners.get(stream, []), room)
        fanout.start()
        for batch in batches:
            await asyncio.to_thread(fanout.publish, batch)
        while fanout._batches or fanout._work is not None:
            await asyncio.sleep(0)
        assert room.enter(1000)  # all the room was given back

    asyncio.run(run())


def test_updates_read_and_given_are_counted() -> None:
    listeners = {FLOW: [Listener(), Listener(), Listener(fails=True)]}
    fanout = FanOut(lambda stream: listeners.get(stream, []), Room(1000, 100))

    async def run() -> None:
        fanout.start()
        await asyncio.to_thread(fanout.publish, [a_record(b"{}"), a_record(b"{}", OTHER)])
        while fanout._batches or fanout._work is not None:
            await asyncio.sleep(0)

    asyncio.run(run())
    assert (fanout.read, fanout.pushed) == (2, 2)


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
    flow, other = Listener(), Listener()
    published(
        {FLOW: [flow], OTHER: [other]},
        [a_record(b"{}"), a_record(document), a_record(b'{"v":2}')],
        [a_record(b'{"v":3}', OTHER)],
    )

    assert flow.got == [b"{}", b'{"v":2}']
    assert other.got == [b'{"v":3}']


@pytest.mark.parametrize("document", ODD.values(), ids=ODD)
def test_an_odd_update_arrives_as_it_was_emitted(document: bytes) -> None:
    flow = Listener()
    published({FLOW: [flow]}, [a_record(document)])

    assert flow.got == [document]


def test_names_and_times_of_any_kind_stop_nothing() -> None:
    """The record's envelope comes from outside as well."""
    odd = StreamRef("\ud800", "\0")
    listener, flow = Listener(), Listener()
    published(
        {odd: [listener], FLOW: [flow]},
        [
            a_record(b"\xff", odd),
            a_record(b"{}", odd, at=10**400),
            a_record(b"{}", StreamRef("", ""), at=-(10**400)),
            a_record(b"{}"),
        ],
    )

    assert (listener.got, flow.got) == ([b"{}"], [b"{}"])


def test_a_listener_that_fails_is_closed_and_costs_the_others_nothing() -> None:
    before, failing, after = Listener(), Listener(fails=True), Listener()
    published({FLOW: [before, failing, after]}, [a_record(b"{}"), a_record(b'{"v":1}')])

    assert failing.failed
    assert before.got == after.got == [b"{}", b'{"v":1}']


def test_batches_keep_their_order_while_the_loop_is_left_to_others(monkeypatch) -> None:
    """A slice of no length: the loop turns after every single offer."""
    monkeypatch.setattr("delivery.fanout.SLICE_SECONDS", 0.0)
    one, two = Listener(), Listener()
    batches = [[a_record(b'{"v":%d}' % (10 * n + k)) for k in range(10)] for n in range(20)]
    published({FLOW: [one, two]}, *batches)

    assert one.got == two.got == [b'{"v":%d}' % n for n in range(200)]


def test_publish_waits_while_more_bytes_are_on_their_way_than_there_is_room_for() -> None:
    async def run() -> list[bool]:
        fanout = FanOut(lambda _stream: [], Room(100, 100))
        fanout.start()
        entered: list[bool] = []

        def publish() -> None:
            for _ in range(3):
                fanout.publish([a_record(b"x" * 60)])
                entered.append(True)

        thread = threading.Thread(target=publish, daemon=True)
        thread.start()
        thread.join(0.2)  # the loop does not turn meanwhile
        held_up = list(entered)
        await asyncio.to_thread(thread.join, 10)
        assert len(entered) == 3
        return held_up

    assert asyncio.run(run()) == [True]


def test_publish_does_not_wait_for_a_server_that_has_stopped() -> None:
    async def run() -> None:
        fanout = FanOut(lambda _stream: [], Room(1, 1))
        fanout.start()
        fanout.stop()
        await asyncio.wait_for(asyncio.to_thread(fanout.publish, [a_record(b"{}")] * 3), 10)

    asyncio.run(run())
