"""What every transport does for its clients; `transport_clients.HARNESSES` takes a new one."""

from __future__ import annotations

import asyncio

import pytest
from support.delivery_stores import History, a_capacity, a_document
from transport_clients import PUMP, Harness, Refused, harness, publish, through

from delivery.endings import Ending
from delivery.hub import Hub

__all__ = ["harness"]


def test_updates_come_as_emitted_in_order_and_only_of_the_watched_stream(harness) -> None:
    async def scenario(hub: Hub, harness: Harness) -> None:
        pump = await harness.connect(PUMP, "token-1")
        lamp = await harness.connect("/lamp/streams/flow/live", "token-2")
        await publish(hub, 1, 2, 3)
        await publish(hub, 4, name="lamp")

        assert [await pump.receive() for _ in range(3)] == [a_document(at) for at in (1, 2, 3)]
        assert await lamp.receive() == a_document(4)

    through(harness, scenario)


def test_after_brings_what_is_stored_and_then_what_is_live(harness) -> None:
    """More than a page; the last of it is emitted once more, and comes once."""

    async def scenario(hub: Hub, harness: Harness) -> None:
        client = await harness.connect(PUMP + "?after=100", "token-1")
        stored = [await client.receive() for _ in range(1_100)]
        await publish(hub, 1_199, 1_200, 1_201)

        assert stored == [a_document(at) for at in range(101, 1_201)]
        assert await client.receive() == a_document(1_201)

    through(harness, scenario, History(updates=1_200))


@pytest.mark.parametrize(
    ("target", "token", "status"),
    [
        (PUMP, "", 403),
        (PUMP, "wrong", 403),
        ("/private/streams/flow/live", "token-1", 401),
        ("/nothing/streams/flow/live", "token-1", 404),
        (PUMP + "?after=soon", "token-1", 400),
    ],
)
def test_who_may_not_watch_is_refused(harness, target: str, token: str, status: int) -> None:
    async def scenario(hub: Hub, harness: Harness) -> None:
        with pytest.raises(Refused) as refused:
            await harness.connect(target, token)

        assert refused.value.args == (status,)
        assert len(hub.watchers) == len(hub.reception.admitted) == 0

    through(harness, scenario)


def test_nobody_is_let_in_before_what_is_emitted_is_read(harness) -> None:
    """What is emitted until then would be missed, though the history seems to end there."""

    async def scenario(hub: Hub, harness: Harness) -> None:
        hub.reception.is_open = False
        with pytest.raises(Refused) as refused:
            await harness.connect(PUMP + "?after=0", "token-1")
        hub.let_in()
        await harness.connect(PUMP + "?after=0", "token-1")

        assert refused.value.args == (503,)

    through(harness, scenario)


def test_a_place_is_free_again_when_its_client_has_gone(harness) -> None:
    async def scenario(hub: Hub, harness: Harness) -> None:
        first = await harness.connect(PUMP, "token-1")
        with pytest.raises(Refused) as refused:
            await harness.connect(PUMP, "token-1")
        await first.leave()
        while len(hub.reception.admitted) or len(hub.watchers):
            await asyncio.sleep(0.01)
        again = await harness.connect(PUMP, "token-1")
        await publish(hub, 1)

        assert refused.value.args == (429,)
        assert await again.receive() == a_document(1)

    through(harness, scenario, capacity=a_capacity(sockets=1))


def test_others_have_to_ask_again_when_a_document_has_changed(harness) -> None:
    async def scenario(hub: Hub, harness: Harness) -> None:
        foreign = await harness.connect("/open/streams/flow/live", "token-1")
        own = await harness.connect("/open/streams/flow/live", "token-9")
        await publish(hub, 1, name="open")
        await publish(hub, 2, name="open", version=2)

        assert await foreign.receive() == a_document(1)
        assert await foreign.ending() is Ending.DOCUMENT_CHANGED
        assert [await own.receive() for _ in range(2)] == [a_document(1), a_document(2)]

    through(harness, scenario)


def test_clients_are_told_when_the_program_stops(harness) -> None:
    async def scenario(hub: Hub, harness: Harness) -> None:
        client = await harness.connect(PUMP, "token-1")
        stopping = asyncio.create_task(hub.stop())

        assert await client.ending() is Ending.STOPPING
        await stopping
        assert len(hub.watchers) == len(hub.reception.admitted) == 0

    through(harness, scenario)


@pytest.mark.parametrize("ending", Ending)
def test_every_ending_fits_into_a_close_frame(ending: Ending) -> None:
    """125 bytes, of which the code takes two."""
    assert len(ending.value.encode()) <= 123
