"""`GET /metrics`: one client at a time, each within a few seconds."""

from __future__ import annotations

import logging
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from typing import cast

from servioticy.metrics.registry import CONTENT_TYPE, Registry

log = logging.getLogger("servioticy.metrics")

SECONDS = 2.0
"""To send a request, and again to take the answer."""

MAX_HEAD = 16_384
RETRY_SECONDS = 5.0
NOTICES_SECONDS = 0.5
"""So long it may take until it notices that it is closed."""


class Server:
    """Serves the metrics of a registry until it is closed, from a thread of its own.

    A port that is taken is said once and tried again: perhaps it belongs to one that is
    about to end, and metrics are no reason not to run.
    """

    def __init__(
        self,
        registry: Registry,
        host: str,
        port: int,
        path: str = "/metrics",
        told: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`told` gets the port once it is served there; port 0: any that is free."""
        self._registry = registry
        self._address = host, port
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
        said = False
        while not self._closed.is_set():
            try:
                with _Server(self._address, self) as server:
                    self._server = server
                    self._told(server.server_address[1])
                    server.serve_forever(NOTICES_SECONDS)
                    return
            except OSError as error:
                if not said:
                    host, port = self._address
                    log.warning(
                        "metrics_not_served", extra={"host": host, "port": port, "why": str(error)}
                    )
                said = True
                self._closed.wait(RETRY_SECONDS)


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


def serve(registry: Registry, host: str, port: int) -> Server | None:
    """Serve the metrics at this address from now on; port 0: nowhere."""
    return Server(registry, host, port) if port else None


def _answer(status: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
