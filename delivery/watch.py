"""One client of one stream: first what is stored, if it asks for it, then what is live."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from delivery.handover import Handover, Overflow
from delivery.handshake import Admission
from servioticy.errors import Unavailable
from servioticy.model import LastUpdate, Timestamp

PAGE = 500
MAX_UNREAD_BYTES = 1024 * 1024
REMEMBER_SECONDS = 60.0

ReadPage = Callable[[int, Timestamp, int], Awaitable[list[LastUpdate]]]
"""History.updates_after, off the event loop."""


class Watch:
    """A client of a stream. All methods belong to the event loop's thread."""

    def __init__(
        self,
        connection: ServerConnection,
        admission: Admission,
        max_unread_bytes: int = MAX_UNREAD_BYTES,
    ) -> None:
        self.connection = connection
        self.admission = admission
        self._max_unread_bytes = max_unread_bytes
        self._handover = None if admission.after is None else Handover()
        self._live = admission.after is None
        self._closing: asyncio.Task[None] | None = None

    def wants(self, update: LastUpdate, version: int) -> bool:
        """Whether to send it this update now; if not, it is held back, sent already, or
        the client does not keep up and is being closed: it may not cost the others anything.
        """
        if self._closing is not None:
            return False
        if self.admission.foreign and version != self.admission.version:
            # It may be private by now; whoever connects again is asked.
            self._close("the stream's document has changed; reconnect with ?after=")
            return False
        if not self._live and self._handover is not None:
            try:
                self._handover.hold(update)
            except Overflow:
                self._close("the history is read slower than the stream grows; reconnect")
            return False
        if self.connection.transport.get_write_buffer_size() > self._max_unread_bytes:
            self._close("you read slower than the stream grows; reconnect with ?after=")
            return False
        return self._handover is None or not self._handover.is_repeat(update)

    async def catch_up(self, read_page: ReadPage) -> None:
        """Send what is stored, then what came meanwhile; from then on it is live."""
        handover, after = self._handover, self.admission.after
        if handover is None or after is None:
            return
        try:
            while page := await read_page(self.admission.stream_id, after, PAGE):
                handover.read(page)
                await self._send(page)
                after = page[-1].timestamp
            while held := handover.take():
                await self._send(held)
        except Unavailable:
            self._close("the history does not answer; reconnect")
            return
        self._live = True  # nothing was awaited since `take` found nothing more
        asyncio.get_running_loop().call_later(REMEMBER_SECONDS, self._forget)

    async def until_closed(self) -> None:
        """Wait for the end. Clients have nothing to say; what they send is thrown away."""
        with contextlib.suppress(ConnectionClosed):
            async for _ in self.connection:
                pass

    def _forget(self) -> None:
        # By now whatever the history gave has been emitted, or is emitted again.
        self._handover = None

    async def _send(self, updates: list[LastUpdate]) -> None:
        for update in updates:
            await self.connection.send(update.document, text=True)

    def _close(self, reason: str) -> None:
        close = self.connection.close(CloseCode.TRY_AGAIN_LATER, reason)
        self._closing = asyncio.get_running_loop().create_task(close)
