"""One client of each transport, and a hub for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import msgspec
import pytest
from emitted_records import Known
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
    consumed = [Known(record, Position(0, record.timestamp)) for record in records]
    await asyncio.to_thread(hub.publish, consumed)


PUMP = "/pump/streams/flow/live"
