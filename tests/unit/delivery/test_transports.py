"""What every transport does for its clients; a new one is added to `HARNESSES`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import msgspec
import pytest
from memory_transport import MemoryClient, MemoryTransport
from support.delivery_stores import WAIT_SECONDS, Catalog, History, a_capacity, a_document
from support.memory_feeds import MemoryCursors
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from delivery.admission.capacity import Capacity
from delivery.admission.refusals import Refusal
from delivery.endings import Ending
from delivery.feeds.pulls import Pulls
from delivery.hub import Hub
from delivery.transport import Transport
from delivery.transports.http import HttpTransport
from delivery.transports.live import LiveSession
from delivery.transports.websocket import WebSocketTransport, close_code
from servioticy.domain.records import ConsumedRecord, EmittedRecord, Position
from servioticy.embedded import tcp_ports as ports
from servioticy.ports.emitted import EmittedPage


class Refused(Exception):
    """The client was not let in; the only argument is the status."""


class Client(Protocol):
    """A client of some transport."""

    async def receive(self) -> bytes:
        """The next update."""

    async def ending(self) -> Ending:
        """Why it was closed, once what was sent before is read."""

    async def leave(self) -> None:
        """Go."""


class Harness(Protocol):
    """A transport, and how to become a client of it."""

    transport: Transport

    async def connect(self, target: str, token: str) -> Client:
        """Ask for a stream. Raises Refused."""


class InMemory:
    def __init__(self, hub: Hub) -> None:
        self.transport = MemoryTransport(hub)

    async def connect(self, target: str, token: str) -> Client:
        answer = await self.transport.connect(target, token)
        if isinstance(answer, Refusal):
            raise Refused(answer.status)
        return InMemoryClient(answer)


class InMemoryClient:
    def __init__(self, client: MemoryClient) -> None:
        self._client = client

    async def receive(self) -> bytes:
        return await self._client.received.get()

    async def ending(self) -> Ending:
        await self._client.wait_closed()
        assert self._client.ending is not None
        return self._client.ending

    async def leave(self) -> None:
        self._client.disconnect()


class OverWebSocket:
    def __init__(self, hub: Hub) -> None:
        self._port = ports.free()
        self.transport = _on_port(hub, self._port)

    async def connect(self, target: str, token: str) -> Client:
        try:
            socket = await connect(
                f"ws://127.0.0.1:{self._port}{target}",
                additional_headers={"Authorization": token},
                proxy=None,
            )
        except InvalidStatus as refused:
            raise Refused(refused.response.status_code) from None
        return WebSocketClient(socket)


class WebSocketClient:
    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def receive(self) -> bytes:
        return await self._socket.recv(decode=False)

    async def ending(self) -> Ending:
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                await self._socket.recv()
        assert closed.value.rcvd is not None
        ending = Ending(closed.value.rcvd.reason)
        assert closed.value.rcvd.code == close_code(ending)
        return ending

    async def leave(self) -> None:
        await self._socket.close()


class OverEvents:
    def __init__(self, hub: Hub) -> None:
        self._port = ports.free()
        self.transport = _on_port(hub, self._port)

    async def connect(self, target: str, token: str) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**22)
        path = target.replace("/live", "/events")
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n\r\n"
        writer.write(head.encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        status = int(answer.split(b" ", 2)[1])
        if status != 200:
            raise Refused(status)
        return EventClient(reader, writer)


class EventClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def _event(self) -> dict[str, str]:
        lines = (await self._reader.readuntil(b"\n\n")).decode().strip().split("\n")
        return dict(line.split(": ", 1) for line in lines if not line.startswith(":"))

    async def receive(self) -> bytes:
        while "data" not in (event := await self._event()):
            pass
        return event["data"].encode()

    async def ending(self) -> Ending:
        while (event := await self._event()).get("event") != "end":
            pass
        return Ending(json.loads(event["data"])["reason"])

    async def leave(self) -> None:
        self._writer.close()


class Both:
    """A port with all that listens there."""

    def __init__(self, *transports: Transport) -> None:
        self._transports = transports

    async def start(self) -> None:
        for each in self._transports:
            await each.start()

    async def stop(self) -> None:
        for each in self._transports:
            await each.stop()


class Published:
    """What a hub was given to send, as the topic that it came from."""

    def __init__(self, hub: Hub) -> None:
        self._records: list[ConsumedRecord] = []
        publish = hub.publish
        hub.publish = lambda records: (self._records.extend(records), publish(records))[1]

    def read(self, _partition: int, offset: int, end: int) -> EmittedPage:
        return EmittedPage([r for r in self._records if offset <= r.position.offset < end], end)

    def begins_at(self, _partition: int) -> int:
        return 0


def _on_port(hub: Hub, port: int) -> Both:
    pulls = Pulls()
    hub.fanout.begin_at({0: 0})  # a feed has to know what it missed while it read the history
    feeds = hub.feeds(MemoryCursors(), Published(hub), {})
    feeds.start()
    http = HttpTransport(hub, feeds, pulls)
    live = partial(LiveSession, hub, feeds, pulls)
    return Both(http, WebSocketTransport(hub, "127.0.0.1", port, http.protocol, live))


HARNESSES: list[Callable[[Hub], Harness]] = [InMemory, OverWebSocket, OverEvents]


@pytest.fixture(params=HARNESSES)
def harness(request: pytest.FixtureRequest) -> Callable[[Hub], Harness]:
    return request.param


def through(
    make: Callable[[Hub], Harness],
    scenario: Callable[[Hub, Harness], Awaitable[None]],
    history: History | None = None,
    capacity: Capacity | None = None,
) -> None:
    """Run a test's coroutine while the transport is open."""

    async def run() -> None:
        hub = Hub(Catalog(), history or History(), capacity or a_capacity())
        harness = make(hub)
        await hub.start([harness.transport])
        hub.let_in()
        try:
            await asyncio.wait_for(scenario(hub, harness), WAIT_SECONDS)
        finally:
            await hub.stop()

    asyncio.run(run())


async def publish(hub: Hub, *times: int, name: str = "pump", version: int = 1) -> None:
    records = [
        EmittedRecord(name, "flow", 1, version, at, msgspec.Raw(a_document(at))) for at in times
    ]
    consumed = [ConsumedRecord(record, Position(0, record.timestamp)) for record in records]
    await asyncio.to_thread(hub.publish, consumed)


PUMP = "/pump/streams/flow/live"


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
