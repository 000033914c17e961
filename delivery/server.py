"""The push program: every update of a stream, to everybody who watches it, as it is emitted.

One thread reads what the pipeline emits, the event loop sends it, and a few threads ask the
stores whatever may block.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from typing import ParamSpec, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from websockets.asyncio.server import Server, ServerConnection, broadcast, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from delivery.handshake import Addresses, Admission, Refusal, admit
from delivery.watch import MAX_UNREAD_BYTES, Watch
from delivery.watchers import Watchers
from servioticy.errors import Unavailable
from servioticy.messaging.records import EmittedRecord
from servioticy.model import LastUpdate, StreamRef, Timestamp
from servioticy.ports import History

MAX_CLIENT_MESSAGE = 4096
STORE_THREADS = 8
BATCHES_WAITING = 100
PING_SECONDS = 20.0
CLOSE_SECONDS = 2.0

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("servioticy.delivery")

_protocol_log = logging.getLogger("delivery.protocol")
# At its lower levels it writes request lines and headers: tokens.
_protocol_log.setLevel(logging.CRITICAL)


class Delivery:
    """Clients and what they watch; `publish` may be called from any thread but the loop's."""

    def __init__(
        self, catalog: Addresses, history: History, max_unread_bytes: int = MAX_UNREAD_BYTES
    ) -> None:
        self.is_ready = False
        self._catalog = catalog
        self._history = history
        self._max_unread_bytes = max_unread_bytes
        self._watchers: Watchers[Watch] = Watchers()
        # Weak: a client may go between its admission and its socket.
        self._admissions: WeakKeyDictionary[ServerConnection, Admission] = WeakKeyDictionary()
        self._threads = ThreadPoolExecutor(STORE_THREADS, "stores")
        self._room = threading.BoundedSemaphore(BATCHES_WAITING)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def listen(self, host: str, port: int) -> Server:
        """Take connections from now on."""
        self._loop = asyncio.get_running_loop()
        return await serve(
            self._serve,
            host,
            port,
            process_request=self._answer,
            # A frame is small and goes to many: compressing it for each costs more than it saves.
            compression=None,
            max_size=MAX_CLIENT_MESSAGE,
            max_queue=4,
            ping_interval=PING_SECONDS,
            ping_timeout=PING_SECONDS,
            close_timeout=CLOSE_SECONDS,
            server_header="api.servIoTicy",
            logger=_protocol_log,
        )

    def publish(self, records: list[EmittedRecord]) -> None:
        """Send a batch to whoever watches; waits while too many are on their way.

        The reader then leaves the rest in the topic, which has room for it; we have not.
        """
        if self._loop is None or self._loop.is_closed():
            return
        self._room.acquire()
        try:
            self._loop.call_soon_threadsafe(self._send, records)
        except RuntimeError:  # the loop ended in this moment, and with it every client
            self._room.release()

    def _send(self, records: list[EmittedRecord]) -> None:
        self._room.release()
        for record in records:
            watches = self._watchers.of(StreamRef(record.service_object, record.stream))
            if watches:
                update = LastUpdate(record.timestamp, bytes(record.update))
                wanting = [
                    each.connection for each in watches if each.wants(update, record.version)
                ]
                broadcast(wanting, update.document, text=True)

    async def _serve(self, connection: ServerConnection) -> None:
        admission = self._admissions.pop(connection)
        watch = Watch(connection, admission, self._max_unread_bytes)
        with self._watched(watch):
            log.info("watch_opened", extra={"stream": str(admission.stream)})
            try:
                await watch.catch_up(self._read_page)
                await watch.until_closed()
            except ConnectionClosed:
                pass
        code = connection.close_code
        log.info("watch_closed", extra={"stream": str(admission.stream), "code": code})

    @contextmanager
    def _watched(self, watch: Watch) -> Iterator[None]:
        self._watchers.add(watch.admission.stream, watch)
        try:
            yield
        finally:
            self._watchers.remove(watch.admission.stream, watch)

    async def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer before the upgrade; None opens the socket."""
        if urlsplit(request.path).path == "/health":
            return _response(200 if self.is_ready else 503, b'{"ready":%s}' % self._readiness())
        authorization = next(iter(request.headers.get_all("Authorization")), "")
        try:
            answer = await self._off_loop(admit, request.path, authorization, self._catalog)
        except Unavailable:
            answer = Refusal(503, "The store does not answer; try again")
        if isinstance(answer, Refusal):
            return _response(answer.status, answer.body())
        self._admissions[connection] = answer
        return None

    async def _read_page(self, stream: int, after: Timestamp, limit: int) -> list[LastUpdate]:
        return await self._off_loop(self._history.updates_after, stream, after, limit)

    async def _off_loop(self, ask: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: ask(*arguments, **named))

    def _readiness(self) -> bytes:
        return b"true" if self.is_ready else b"false"


def _response(status: int, body: bytes) -> Response:
    headers = Headers(
        {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
    )
    return Response(status, HTTPStatus(status).phrase, headers, body)
