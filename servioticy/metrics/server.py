"""`GET /metrics`: one client at a time, each within a few seconds."""

from __future__ import annotations

import logging
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Sequence
from typing import cast

from servioticy.metrics.registry import CONTENT_TYPE, Registry

log = logging.getLogger("servioticy.metrics")

SECONDS = 2.0
"""To send a request, and again to take the answer."""

MAX_HEAD = 16_384
RETRY_SECONDS = 5.0
BESIDE_SECONDS = 30.0
"""So long a port that is taken may be that of one that is about to end."""
NOTICES_SECONDS = 0.5
"""So long it may take until it notices that it is closed."""


class Server:
    """Serves the metrics of a registry until it is closed, from a thread of its own.

    A port that is taken is said once and tried again: perhaps it belongs to one that is
    about to end, and metrics are no reason not to run. Where it does not end it is another
    process of the same program: then the first of the further ports is taken that is free.
    """

    def __init__(
        self,
        registry: Registry,
        host: str,
        ports: Sequence[int],
        path: str = "/metrics",
        told: Callable[[int], None] = lambda _: None,
        setting: str = "",
    ) -> None:
        """`told` gets the port once it is served there; port 0: any that is free. `setting` is
        that of the first port."""
        self._registry = registry
        self._host, self._ports = host, ports
        self._setting = setting
        self.path = path
        self._told = told
        self._closed = threading.Event()
        self._server: _Server | None = None
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Serve no more."""
        self._closed.set()
        if self._server is not None:
            self._server.shutdown()
        self._thread.join()

    def answer(self, head: bytes) -> bytes:
        """Return the answer to a request."""
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
        if method != b"GET" or path != self.path:
            return _answer("404 Not Found", b"")
        try:
            return _answer("200 OK", self._registry.text())
        except Exception:
            log.exception("metrics_failed")
            return _answer("500 Internal Server Error", b"")

    def _serve(self) -> None:
        began, said = time.monotonic(), False
        first = self._ports[0]
        facts = {"host": self._host, "port": first, "setting": self._setting}
        while not self._closed.is_set():
            is_beside = time.monotonic() - began >= BESIDE_SECONDS
            for port in self._ports if is_beside else (first,):
                try:
                    server = _Server((self._host, port), self)
                except OSError as error:
                    why = str(error)
                    continue
                if port != first:
                    log.warning("metrics_elsewhere", extra={**facts, "at": port})
                self._serve_by(server)
                return
            if not said:
                log.warning("metrics_not_served", extra={**facts, "why": why})
            said = True
            self._closed.wait(RETRY_SECONDS)

    def _serve_by(self, server: _Server) -> None:
        with server:
            self._server = server
            self._told(server.server_address[1])
            server.serve_forever(NOTICES_SECONDS)


class _Server(socketserver.TCPServer):
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], owner: Server) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.owner = owner
        super().__init__(address, _Client)

    def handle_error(self, _request: object, _client: object) -> None:
        """A client that goes, or takes too long, is no event."""


class _Client(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        ends = time.monotonic() + SECONDS
        head = b""
        while b"\r\n\r\n" not in head and len(head) < MAX_HEAD:
            self.request.settimeout(max(0.001, ends - time.monotonic()))
            some = self.request.recv(MAX_HEAD)
            if not some:
                return
            head += some
        self.request.settimeout(SECONDS)
        self.request.sendall(cast(_Server, self.server).owner.answer(head))


def _answer(status: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
