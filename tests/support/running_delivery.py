"""The delivery program in a thread of the test, on real sockets, with stores in memory."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import cast

import msgspec
from emitted_records import Known
from support.delivery_stores import WAIT_SECONDS, Catalog, History, a_capacity
from support.memory_actuations import MemoryActuations, ReportingApi, Unsubscribed
from support.memory_feeds import MemoryCursors, MemoryTopic
from websockets.sync.client import ClientConnection, connect

from delivery.actuations.queues import Queues
from delivery.admission.capacity import Capacity
from delivery.admission.fair_executor import FairExecutor
from delivery.feeds.pulls import Pulls
from delivery.hub import Hub
from delivery.rest_api import Api
from delivery.transports.devices import Devices
from delivery.transports.http import HttpTransport
from delivery.transports.live import LiveSession
from delivery.transports.passing_on import PassingOn
from delivery.transports.websocket import WebSocketTransport
from servioticy.domain.records import EmittedRecord, Position
from servioticy.doors.certificate import Certificate
from servioticy.embedded import tcp_ports as ports

ATTACKER, INNOCENT = "token-1", "token-2"


class RunningDelivery:
    """The program, and ways to be its client."""

    def __init__(
        self,
        capacity: Capacity | None = None,
        certificate: Certificate | None = None,
        **limits: int,
    ) -> None:
        self.catalog, self.history = Catalog(), History()
        self.actuations = MemoryActuations()
        self.port = ports.free()
        self._certificate = certificate
        self.hub: Hub
        self._clients: list[socket.socket] = []
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(capacity, limits)))

    async def _run(self, capacity: Capacity | None, limits: dict[str, int]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        room = capacity or a_capacity()
        self.hub = Hub(self.catalog, self.history, room, access_changes=self.catalog, **limits)
        pulls = Pulls()
        self.topic, self.cursors = MemoryTopic(), MemoryCursors()
        self.feeds = self.hub.feeds(self.cursors, self.topic, {"test": pulls.receive})
        passing_on = PassingOn(self.feeds)
        await passing_on.start()
        http = HttpTransport(self.hub, self.feeds, pulls, passing_on)
        self.hub.fanout.begin_at(self.topic.ends())
        self.feeds.start()
        calls = FairExecutor("actuations", 1)
        queues = Queues(self.actuations, Unsubscribed, calls.run)
        queues.start()
        devices = Devices(queues, cast(Api, ReportingApi(self.actuations)))
        live = partial(LiveSession, self.hub, self.feeds, pulls, devices)
        sockets = WebSocketTransport(
            self.hub,
            "127.0.0.1",
            self.port,
            http.protocol,
            live,
            certificate=self._certificate,
        )
        await self.hub.start([http, sockets])
        self.hub.let_in()
        self._ready.set()
        await self._stop.wait()
        await queues.stop()
        await self.feeds.stop()
        await self.hub.stop()
        await passing_on.stop()

    def __enter__(self) -> RunningDelivery:
        self._thread.start()
        assert self._ready.wait(WAIT_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self.catalog.may_answer.set()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive(), "it did not stop"
        for client in self._clients:
            client.close()

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for a condition, asked in the program's own loop."""

        async def ask() -> bool:
            return is_so()

        deadline = time.monotonic() + WAIT_SECONDS
        while not asyncio.run_coroutine_threadsafe(ask(), self._loop).result(WAIT_SECONDS):
            assert time.monotonic() < deadline, "that did not happen"
            time.sleep(0.01)

    def publish(self, *documents: bytes, name: str = "pump") -> None:
        self.hub.publish(
            [
                Known(
                    EmittedRecord(name, "flow", 1, 1, at, msgspec.Raw(document)), Position(0, at)
                )
                for at, document in enumerate(documents)
            ]
        )

    def watch(self, token: str, query: str = "", name: str = "pump") -> ClientConnection:
        return connect(
            f"ws://127.0.0.1:{self.port}/{name}/streams/flow/live{query}",
            additional_headers={"Authorization": token},
            compression=None,
            proxy=None,
            max_size=None,
            open_timeout=WAIT_SECONDS,
            close_timeout=0.5,
        )

    def plain(self, sent: bytes = b"") -> socket.socket:
        """A bare connection that takes next to nothing unless it is read; it ends with us."""
        client = socket.socket()
        self._clients.append(client)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(WAIT_SECONDS)
        client.connect(("127.0.0.1", self.port))
        client.sendall(sent)
        return client

    def unread(self, token: str, query: str = "", name: str = "pump") -> socket.socket:
        """An open WebSocket of which nothing but the answer to its request is read."""
        client = self.plain(a_request(f"/{name}/streams/flow/live{query}", token))
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += client.recv(1)
        assert b" 101 " in answer, answer
        return client

    def use_up_quota_of(self, tenant: int) -> None:
        """Cut its only socket off, and take its place before it comes again."""

        def take() -> bool:
            self.hub.reception.pending.abort_all()
            if len(self.hub.reception.admitted) == 0:
                self.hub.reception.admitted.acquire(tenant)
                return True
            return False

        self.until(take)

    def release_quota_of(self, tenant: int) -> None:
        """Let it come again."""
        self._loop.call_soon_threadsafe(self.hub.reception.admitted.release, tenant)

    @property
    def sockets(self) -> int:
        return len(self.hub.reception.admitted)

    @property
    def pending(self) -> int:
        return len(self.hub.reception.pending)


def a_request(target: str, token: str = INNOCENT, more: str = "") -> bytes:
    return (
        f"GET {target} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        f"Authorization: {token}\r\n{more}\r\n"
    ).encode("latin-1")


def received(client: socket.socket) -> bytes:
    """All that comes until the other side ends it."""
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(65_536):
            got += part
    client.close()
    return got


def status(client: socket.socket) -> int:
    return int(received(client).split(b" ", 2)[1])
