"""An edge on real connections, with an application that does what a test tells it."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

from memory import MemoryPlatform
from scraped import samples
from waiting import until

from api.edge.calls import Application, KnownQuotas
from api.edge.edge import Edge
from api.http.metrics import ROUTE
from api.http.read_after_write import CALLER, WAITED, WAITS_FOR
from api.http.while_allowed import NoLongerAllowed, WhileAllowed
from api.server import attend
from ingest.progress import Awaited, Progress
from servioticy.doors.certificate import Certificate
from servioticy.metrics import Registry
from servioticy.refusals import Denied
from servioticy.settings import Settings, changed

SECONDS = 20.0
"""The longest a test waits for what has to happen."""
QUICK = changed(
    Settings(),
    api_share=0.5,
    api_update_threads=4,
    api_read_threads=4,
    api_change_threads=2,
    api_queue_of_one=8,
    api_idle_seconds=SECONDS,
    api_body_seconds=SECONDS,
    api_send_seconds=SECONDS,
    max_body_bytes=1_000,
)
PAGE = b"x" * 20_000
BREAKS = {
    "broken": RuntimeError("Postgres has gone"),
    "ended": NoLongerAllowed("Access was denied!"),
}
"""Answers that break off after some pages, and why."""
REQUEST = b"PUT /o/streams/s HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\n"


WORK_SECONDS = 0.02
"""Of the processor."""


def until_used(seconds: float) -> None:
    """Compute until this thread has had the processor for so long."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Told:
    """An application; the path says what it does, the token who asks."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.inside: list[str] = []
        self.revoked: set[str] = set()
        self.blocks = {"block"}
        self.pages = 0
        self.closed = threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        token = environ.get("HTTP_AUTHORIZATION", "")
        name = environ["PATH_INFO"].rpartition("/")[2]
        body = environ["wsgi.input"].read()
        self.inside.append(token)
        if name == "works":
            until_used(WORK_SECONDS)
        if token in self.revoked:
            start_response("403 FORBIDDEN", [("Content-Length", "0")])
            return []
        if token:
            environ[CALLER] = hash(token)
        if name == "fail":
            raise RuntimeError("a mistake of ours")
        if name in self.blocks:
            self.gate.wait(SECONDS)
        if name == "routed":
            environ[ROUTE] = "/<service_object>"
        if name == "waits" and WAITED not in environ:
            environ[WAITS_FOR].append(Awaited(0, 0))
        if name == "waits-for-two" and WAITED not in environ:
            environ[WAITS_FOR].extend([Awaited(0, 0), Awaited(1, 0), Awaited(0, 0)])
        if name in ("pages", "allowed", *BREAKS):
            start_response("200 OK", [("Content-Type", "text/plain")])
            if name == "allowed":
                return WhileAllowed(self._made(1_000, None), self._allow, 0.0)
            return self._made(3 if name in BREAKS else 1_000, BREAKS.get(name))
        shown = body or environ.get("QUERY_STRING", "").encode() or name.encode()
        headers = [("Content-Length", str(len(shown))), *environ.get(WAITED, {}).items()]
        start_response("200 OK", headers)
        return [shown]

    def _allow(self) -> None:
        if self.gate.is_set():
            raise Denied("Access was denied!")

    def _made(self, count: int, error: Exception | None) -> Iterator[bytes]:
        try:
            for _ in range(count):
                self.pages += 1
                yield PAGE
            if error is not None:
                raise error
        finally:
            self.closed.set()


class Serving:
    """An edge in a thread of its own."""

    def __init__(
        self,
        settings: Settings,
        app: Told,
        platform: MemoryPlatform,
        quotas: KnownQuotas | None = None,
        certificate: Certificate | None = None,
    ) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._registry = Registry(with_process=False)
        progress = Progress(platform.history, platform.log)
        ready = threading.Event()

        def serve() -> None:
            asyncio.set_event_loop(self._loop)
            application = Application(app, "127.0.0.1", self.port, quotas=quotas)
            self.edge = Edge(application, progress, settings, self._loop, self._registry)
            self.door = attend([self.listener], self.edge, self._loop, certificate)
            self._loop.call_soon(ready.set)
            self._loop.run_forever()

        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()
        assert ready.wait(SECONDS)

    def connect(self, receive_buffer: int = 0) -> socket.socket:
        client = socket.socket()
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(SECONDS)
        client.connect(("127.0.0.1", self.port))
        return client

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)

    def send(self, path: str, token: str = "a", method: str = "GET") -> http.client.HTTPConnection:
        """A request whose answer is not awaited yet."""
        connection = self.connection()
        connection.request(method, path, headers={"Authorization": token} if token else {})
        return connection

    def ask(self, path: str, token: str = "a", method: str = "GET") -> http.client.HTTPResponse:
        return self.send(path, token, method).getresponse()

    def requests(self) -> dict[str, float]:
        """How many requests it has counted."""
        found = samples(self._registry.text())
        return {name: value for name, value in found.items() if "_requests_total" in name}

    def durations(self) -> dict[str, float]:
        """How many durations it has noted."""
        found = samples(self._registry.text())
        return {name: value for name, value in found.items() if "_seconds_count" in name}

    def introduce(self, *tokens: str) -> None:
        """Let their first requests in: from then on each has a share of its own."""
        for count, token in enumerate(tokens, start=len(self.edge._tokens) + 1):
            self.ask("/hello", token).read()
            until(lambda count=count: len(self.edge._tokens) == count)

    def attend_by(self, listener: socket.socket) -> None:
        """Let connections in by another socket from now on, and not by the first."""

        def change() -> None:
            self.door.close()
            self.door = attend([listener], self.edge, self._loop)

        self._loop.call_soon_threadsafe(change)

    def stop(self) -> None:
        stopping = asyncio.run_coroutine_threadsafe(self.edge.stop(0.0), self._loop)
        stopping.result(SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self.listener.close()


def everything(client: socket.socket) -> bytes:
    """What comes until the other side closes."""
    found = []
    while some := client.recv(65_536):
        found.append(some)
    return b"".join(found)
