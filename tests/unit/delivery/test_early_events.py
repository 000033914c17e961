"""Where a client stands that has got results of windows which have not ended."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from delivery.feeds.deliveries import Delivery
from delivery.feeds.event_ids import EventId, read_event_id
from delivery.transports.event_stream import EventStream, stream_event
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.records import Position

EARLY = b'{"channels":{},"lastUpdate":19,"revision":1,"early":true}'
REVISED = b'{"channels":{},"lastUpdate":9,"revision":2}'
FINAL = b'{"channels":{},"lastUpdate":9}'


def ids_of(*updates: tuple[int, bytes], begin: EventId | None = None) -> list[EventId | None]:
    """The ids that a client gets with these, one after the other in the topic."""
    written: list[bytes] = []

    async def sent() -> None:
        call = SimpleNamespace(
            write=written.append, begin=lambda *_: None, unsent_bytes=lambda: 0, written_bytes=0
        )
        feed = SimpleNamespace(log="0badcafe")
        none = cast(Any, None)
        stream = EventStream(
            cast(Any, call), cast(Any, feed), none, lambda _: None, stream_event, none
        )
        stream.begin(begin)
        written.clear()
        for offset, (at, document) in enumerate(updates):
            update = LastUpdate(at, document)
            stream._send(Delivery(StreamRef("so", "s"), update, Position(0, offset)))

    asyncio.run(sent())
    return [read_event_id(each.split(b"\n")[0].decode().removeprefix("id: ")) for each in written]


def test_an_early_result_is_a_place_whose_time_is_that_of_the_one_before() -> None:
    """Where the place is lost the history goes on behind that: final ones are still to come."""
    before = EventId(Position(0, 7), None, 5, "0badcafe")
    found = ids_of((19, EARLY), (9, FINAL), (19, EARLY), (9, REVISED), begin=before)

    assert [each and each.timestamp for each in found] == [5, 9, 9, 9]
    assert [each and each.position for each in found] == [Position(0, n) for n in range(4)]


def test_before_any_other_it_is_before_all() -> None:
    (found,) = ids_of((19, EARLY))
    assert found is not None
    assert found.timestamp < 0
