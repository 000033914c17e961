"""The broker in a thread of the test, on real sockets; the log and the API are the test's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
from emitted_records import Known
from support.delivery_stores import WAIT_SECONDS, Catalog, History, a_capacity
from support.memory_actuations import MemoryActuations
from support.played_ingest import PlayedIngest

from broker.actuations import TopicWay, attach
from broker.broker import Broker
from broker.lane import Lane
from broker.listener import BrokerTransport, Ports
from delivery.actuations.queues import Queues
from delivery.admission.capacity import Capacity
from delivery.admission.fair_executor import FairExecutor
from delivery.hub import Hub
from delivery.rest_api import Api
from ingest.ingest import Ingest
from servioticy.domain.model import StreamKey
from servioticy.domain.records import EmittedRecord, Position
from servioticy.doors.certificate import Certificate
from servioticy.embedded import tcp_ports as ports
from servioticy.ports.addresses import Addresses
from servioticy.ports.history import VersionedUpdate


class Stored(History):
    """Has a last update, if the test gives it one."""

    last: VersionedUpdate | None = None

    def last_update(self, stream: StreamKey) -> VersionedUpdate | None:
        return self.last


class PlayedApi:
    """Notes what it is asked, and answers as the test says."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str, bytes]] = []
        self.answers: list[tuple[int, bytes]] = []
        """What it says next; then 202."""
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                token = self.headers["Authorization"]
                api.asked.append((self.command, self.path, token, body))
                status, answer = api.answers.pop(0) if api.answers else (202, b'{"accepted":1}')
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_POST = do_GET = do_DELETE = do_PUT  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class RunningBroker:
    """The broker, and ways to publish to its clients."""

    def __init__(
        self,
        capacity: Capacity | None = None,
        addresses: Addresses | None = None,
        ingest: Ingest | None = None,
        certificate: Certificate | None = None,
    ) -> None:
        """`addresses` and `ingest` in place of those of the test; a certificate is shown at
        `tls_port`.
        """
        self.catalog, self.stored, self.api = Catalog(), Stored(), PlayedApi()
        self.way = PlayedIngest(self.catalog)
        self.log = self.way.log
        """What clients have published is there."""
        self.actuations = MemoryActuations()
        self.port, self.tls_port = ports.free(), ports.free()
        self._ports = Ports(self.port, self.tls_port if certificate else 0, certificate)
        self.hub: Hub
        self.broker: Broker
        self.queues: Queues
        self._capacity = capacity or a_capacity()
        self._addresses = addresses or self.catalog
        self._ingest = ingest or self.way.ingest
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def forget(self) -> None:
        """As if nothing had been asked or stored yet: for the next test."""
        self.api.asked.clear()
        self.api.answers.clear()
        self.log.forget()
        self.stored.last = None

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self.hub = Hub(self._addresses, self.stored, self._capacity, access_changes=self.catalog)
        api = Api(self.api.url)
        await api.start()
        lane = Lane(self._ingest)
        self.broker = Broker(self.hub, self.stored, api, lane)
        calls = FairExecutor("actuations", 1)
        self.queues = Queues(self.actuations, partial(TopicWay, self.broker.exchange), calls.run)
        attach(self.broker.exchange, self.queues)
        self.queues.start()
        await self.hub.start([BrokerTransport(self.broker, "127.0.0.1", self._ports, 1_048_576)])
        self.hub.let_in()
        self._ready.set()
        await self._stop.wait()
        await self.queues.stop()
        await self.hub.stop()
        await api.stop()
        await lane.stop()

    def __enter__(self) -> RunningBroker:
        self._thread.start()
        assert self._ready.wait(WAIT_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(WAIT_SECONDS)
        self.api.stop()
        assert not self._thread.is_alive(), "it did not stop"

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the program's own loop."""
        return self.begin(coroutine).result(WAIT_SECONDS)

    def begin(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run something in the program's own loop, and do not wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def call(self, function: Callable[[], Any]) -> Any:
        """Call something in the program's own loop."""

        async def called() -> Any:
            return function()

        return self.run(called())

    def emit(self, *times: int, name: str = "pump", version: int = 1, padding: int = 0) -> None:
        """Let the pipeline have emitted these updates of the stream `flow`."""
        self.hub.publish(
            [
                Known(
                    EmittedRecord(
                        name, "flow", 1, version, at, msgspec.Raw(an_update(at, padding))
                    ),
                    Position(0, at),
                )
                for at in times
            ]
        )


def an_update(at: int, padding: int = 0) -> bytes:
    more = b',"more":"%b"' % (b"x" * padding) if padding else b""
    return b'{"channels":{"v":{"current-value":1}},"lastUpdate":%d%b}' % (at, more)
