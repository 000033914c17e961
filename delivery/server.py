"""The push program: every update of a stream, to everybody who watches it, as it is emitted.

One thread reads what the pipeline emits, the event loop sends it, and a few threads ask the
stores whatever may block.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from http import HTTPStatus
from typing import cast
from weakref import WeakKeyDictionary

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from delivery.askers import Askers
from delivery.backlog import Backlog
from delivery.capacity import Capacity
from delivery.door import Caller, Door, callers_at
from delivery.fanout import FanOut
from delivery.handshake import Addresses, Admission, Refusal, Wish, admit, read
from delivery.shares import Full, Shares
from delivery.turns import Turns
from delivery.watch import CLOSE_SECONDS, MAX_UNREAD_BYTES, WRITE_BUFFER_BYTES, Watch
from delivery.watchers import Watchers
from servioticy.domain.model import LastUpdate, Timestamp
from servioticy.domain.records import EmittedRecord
from servioticy.errors import Unavailable
from servioticy.ports import History

MAX_CLIENT_MESSAGE = 4096
ASKED_AT_ONCE = 4
PAGES_AT_ONCE = 4
PAGE = 500
PAGE_BYTES = 256 * 1024
BACKLOG_BYTES = 256 * 1024 * 1024
HANDSHAKE_SECONDS = 10.0
PING_SECONDS = 20.0
LOOK_SECONDS = 1.0
WAITING_TO_BE_ACCEPTED = 512
RETRY_SECONDS = 5

log = logging.getLogger("servioticy.delivery")

_protocol_log = logging.getLogger("delivery.protocol")
# At its lower levels it writes request lines and headers: tokens.
_protocol_log.setLevel(logging.CRITICAL)


class Delivery:
    """Clients and what they watch; `publish` may be called from any thread but the loop's."""

    def __init__(
        self,
        catalog: Addresses,
        history: History,
        capacity: Capacity | None = None,
        *,
        max_backlog_bytes: int = BACKLOG_BYTES,
        max_unread_bytes: int = MAX_UNREAD_BYTES,
    ) -> None:
        capacity = capacity or Capacity()
        self.is_ready = False
        self._catalog = catalog
        self._history = history
        self._max_unread_bytes = max_unread_bytes
        self._door = Door(capacity.standing)
        self._seats = Shares(capacity.sockets, capacity.sockets_per_tenant)
        self._askers = Askers()
        self._asked = Turns("asked", ASKED_AT_ONCE, capacity.asking, capacity.asking_each)
        self._pages = Turns("pages", PAGES_AT_ONCE)
        self._backlog = Backlog(max_backlog_bytes)
        self._watchers: Watchers[Watch] = Watchers()
        self.fanout = FanOut(self._watchers.of)
        self.sockets = 0
        """open now"""
        # Weak: a client may go between its admission and its socket.
        self._admissions: WeakKeyDictionary[ServerConnection, Admission] = WeakKeyDictionary()
        self._server: Server | None = None
        self._looking: asyncio.Task[None] | None = None

    async def listen(self, host: str, port: int) -> None:
        """Take connections from now on."""
        self.fanout.start()
        self._looking = asyncio.create_task(self._look_after_watchers())
        self._server = await serve(
            self._serve,
            host,
            port,
            process_request=self._answer,
            create_connection=callers_at(self._door),
            # A frame is small and goes to many: compressing it for each costs more than it saves.
            compression=None,
            max_size=MAX_CLIENT_MESSAGE,
            max_queue=4,
            write_limit=WRITE_BUFFER_BYTES,
            open_timeout=HANDSHAKE_SECONDS,
            ping_interval=PING_SECONDS,
            ping_timeout=PING_SECONDS,
            close_timeout=CLOSE_SECONDS,
            server_header="api.servIoTicy",
            logger=_protocol_log,
            backlog=WAITING_TO_BE_ACCEPTED,
        )

    @property
    def backlog_bytes(self) -> int:
        """What is kept for sockets that have not taken it yet."""
        return self._backlog.total

    def publish(self, records: list[EmittedRecord]) -> None:
        """Send a batch to whoever watches; waits while too much is on its way."""
        self.fanout.publish(records)

    async def close(self) -> None:
        """Close every socket with 1001; who does not take even that is cut off."""
        if self._server is None or self._looking is None:
            return
        self.fanout.stop()
        self._looking.cancel()
        self._server.close(reason="the server stops")
        asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._door.cut_off_everybody)
        await self._server.wait_closed()

    async def _serve(self, connection: ServerConnection) -> None:
        admission = self._admissions.pop(connection)
        stream = str(admission.stream)
        log.info("watch_opened", extra={"stream": stream})
        watch = Watch(connection, admission, self._backlog, self._max_unread_bytes)
        self._watchers.add(admission.stream, watch)
        self.sockets += 1
        try:
            await watch.run(self._read_page)
        finally:
            self.sockets -= 1
            self._watchers.remove(admission.stream, watch)
        log.info("watch_closed", extra={"stream": stream, "code": connection.close_code})

    async def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer before the upgrade; None opens the socket."""
        caller = cast(Caller, connection)
        if request.path.partition("?")[0] == "/health":
            response = _response(
                200 if self.is_ready else 503, b'{"ready":%s}' % self._readiness()
            )
        else:
            answer = await self._decide(caller, request)
            if isinstance(answer, Admission):
                self._admissions[connection] = answer
                return None
            response = _refused(answer)
        self._door.stands(caller)
        return response

    async def _decide(self, caller: Caller, request: Request) -> Admission | Refusal:
        wish = read(request.path, next(iter(request.headers.get_all("Authorization")), ""))
        if isinstance(wish, Refusal):
            return wish
        try:
            return await self._seated(caller, wish)
        except Full as full:
            return Refusal(429 if full.own else 503, "Too many at once; try again", RETRY_SECONDS)
        except Unavailable:
            return Refusal(503, "The store does not answer; try again", RETRY_SECONDS)

    async def _seated(self, caller: Caller, wish: Wish) -> Admission | Refusal:
        """Ask the catalog; who may come in has a seat from now on. Raises Full, Unavailable."""
        who = self._askers.of(wish.token, caller.address)
        answer = await self._asked.ask(who, partial(admit, wish, self._catalog))
        if isinstance(answer, Admission):
            self._askers.note(wish.token, answer.tenant)
            self._seats.take(answer.tenant)
            caller.when_lost(partial(self._seats.give_back, answer.tenant))
        return answer

    async def _read_page(self, admission: Admission, after: Timestamp) -> list[LastUpdate]:
        ask = partial(self._history.updates_after, admission.stream_id, after, PAGE, PAGE_BYTES)
        return await self._pages.ask(admission.tenant, ask)

    async def _look_after_watchers(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._backlog.look_after(asyncio.get_running_loop().time())

    def _readiness(self) -> bytes:
        return b"true" if self.is_ready else b"false"


def _refused(refusal: Refusal) -> Response:
    response = _response(refusal.status, refusal.body())
    if refusal.retry_seconds is not None:
        response.headers["Retry-After"] = str(refusal.retry_seconds)
    return response


def _response(status: int, body: bytes) -> Response:
    headers = Headers(
        {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
    )
    return Response(status, HTTPStatus(status).phrase, headers, body)
