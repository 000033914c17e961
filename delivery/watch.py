"""One client of one stream: first what is stored, if it asks for it, then what is live."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from websockets.asyncio.server import ServerConnection, broadcast
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from delivery.backlog import Backlog
from delivery.handover import Handover, Overflow, size
from delivery.handshake import Admission
from delivery.shares import Full
from servioticy.domain.model import LastUpdate, Timestamp
from servioticy.errors import Unavailable

WRITE_BUFFER_BYTES = 64 * 1024
MAX_UNREAD_BYTES = 8 * 1024 * 1024
REMEMBER_SECONDS = 60.0
STALL_SECONDS = 30.0
CLOSE_SECONDS = 2.0

ReadPage = Callable[[Admission, Timestamp], Awaitable[list[LastUpdate]]]
"""The next stored updates after a timestamp; empty: that was all."""

log = logging.getLogger("servioticy.delivery")


class Watch:
    """A client of a stream. All methods belong to the event loop's thread."""

    def __init__(
        self,
        connection: ServerConnection,
        admission: Admission,
        backlog: Backlog,
        max_unread_bytes: int = MAX_UNREAD_BYTES,
    ) -> None:
        self.connection = connection
        self.admission = admission
        self._backlog = backlog
        self._max_unread_bytes = max_unread_bytes
        self._handover = None if admission.after is None else Handover()
        self._live = admission.after is None
        self._closing: asyncio.Task[None] | None = None
        self._sending: deque[LastUpdate] = deque()
        self._sending_bytes = 0
        self._given_bytes = 0
        self._taken_bytes = 0
        self._stalled_since: float | None = None
        self._forgetting: asyncio.TimerHandle | None = None

    @property
    def tenant(self) -> int:
        """Who watches."""
        return self.admission.tenant

    def weight(self) -> int:
        """Bytes kept for it: held back, about to be sent, not taken yet, and remembered."""
        handover = self._handover
        kept = 0 if handover is None else handover.held_bytes + handover.remembered_bytes
        return kept + self._sending_bytes + self._unread_bytes()

    def offer(self, update: LastUpdate, version: int) -> None:
        """Send it this update, or hold it back; or close it: it may not cost the others anything.

        What the history gave already is not sent again.
        """
        if self._closing is not None:
            return
        if self.admission.foreign and version != self.admission.version:
            # It may be private by now; whoever connects again is asked.
            self.close("the stream's document has changed; reconnect with ?after=")
        elif not self._live and self._handover is not None:
            self._hold(self._handover, update)
        elif self._unread_bytes() > self._max_unread_bytes:
            self.close("you read slower than the stream grows; reconnect with ?after=")
        elif self._handover is None or not self._handover.is_repeat(update):
            broadcast([self.connection], update.document, raise_exceptions=True, text=True)
            self._given_bytes += len(update.document)
            if self._unread_bytes():
                self._backlog.weigh(self)

    def fail(self) -> None:
        """Close it: something about it is not as we think."""
        self.close("an update could not be sent; reconnect with ?after=", CloseCode.INTERNAL_ERROR)

    async def run(self, read_page: ReadPage) -> None:
        """Until the client goes or is closed."""
        catching_up = asyncio.create_task(self._catch_up(read_page))
        try:
            await self._until_closed()
        finally:
            catching_up.cancel()
            await asyncio.wait([catching_up])
            self._handover = None
            if self._forgetting is not None:
                self._forgetting.cancel()  # it would keep us, and the connection, until then
            self._backlog.remove(self)

    def look_after(self, now: float) -> None:
        """Abort it where it has not taken a byte for too long, however few wait for it."""
        unread = self._unread_bytes()
        taken = self._given_bytes - unread
        if not unread or taken > self._taken_bytes:
            self._stalled_since = None
        elif self._stalled_since is None:
            self._stalled_since = now
        elif now - self._stalled_since >= STALL_SECONDS:
            self.connection.transport.abort()
        self._taken_bytes = taken

    def give_up(self) -> None:
        """Keep nothing for it: forget what it got, where that is most of it; else the socket."""
        handover = self._handover
        if handover is not None and handover.remembered_bytes * 2 >= self.weight():
            handover.forget()
            return
        if handover is not None:
            handover.take()
            handover.forget()
        self._sending.clear()
        self._sending_bytes = 0
        self.close("too much waits for sockets that do not read; reconnect with ?after=")
        if self._unread_bytes() > WRITE_BUFFER_BYTES:
            self.connection.transport.abort()

    def close(self, reason: str, code: CloseCode = CloseCode.TRY_AGAIN_LATER) -> None:
        """Say why and close; cut it off where it does not take even that."""
        if self._closing is None:
            loop = asyncio.get_running_loop()
            self._closing = loop.create_task(self.connection.close(code, reason))
            loop.call_later(CLOSE_SECONDS, self.connection.transport.abort)

    async def _until_closed(self) -> None:
        # Clients have nothing to say; what they send is thrown away.
        with contextlib.suppress(ConnectionClosed):
            async for _ in self.connection:
                pass

    async def _catch_up(self, read_page: ReadPage) -> None:
        handover, after = self._handover, self.admission.after
        if handover is None or after is None:
            return
        try:
            await self._send_history(handover, after, read_page)
        except (Unavailable, Full):
            self.close("the history does not answer; reconnect")
        except ConnectionClosed:
            pass
        except Exception:
            log.exception("catch_up_failed")
            self.fail()

    async def _send_history(
        self, handover: Handover, after: Timestamp, read_page: ReadPage
    ) -> None:
        """Send what is stored, then what came meanwhile; from then on it is live."""
        while page := await read_page(self.admission, after):
            after = page[-1].timestamp
            handover.read(page)
            await self._send(page)
        while held := handover.take():
            await self._send(held)
        self._live = True  # nothing was awaited since `take` found nothing more
        later = asyncio.get_running_loop().call_later
        self._forgetting = later(REMEMBER_SECONDS, self._forget)

    async def _send(self, updates: list[LastUpdate]) -> None:
        """As fast as the socket takes them; those that wait for it count."""
        self._sending = deque(updates)
        self._sending_bytes = sum(map(size, updates))
        updates.clear()
        self._backlog.weigh(self)
        while self._sending:
            update = self._sending.popleft()
            self._given_bytes += len(update.document)
            self._sending_bytes -= size(update)
            await self.connection.send(update.document, text=True)
            self._backlog.weigh(self)

    def _hold(self, handover: Handover, update: LastUpdate) -> None:
        try:
            handover.hold(update)
        except Overflow:
            self.close("the history is read slower than the stream grows; reconnect")
        else:
            self._backlog.weigh(self)

    def _forget(self) -> None:
        # By now whatever the history gave has been emitted, or is emitted again.
        if self._handover is not None:
            self._handover = None
            self._backlog.weigh(self)

    def _unread_bytes(self) -> int:
        return self.connection.transport.get_write_buffer_size()
