"""One client of one stream: first what is stored, if it asks for it, then what is live."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from delivery.admission.owner_semaphore import SemaphoreFull
from delivery.admission.requests import Admission
from delivery.admission.resting import TenantRests
from delivery.backlog import Backlog
from delivery.endings import Ending
from delivery.fanout import LiveUpdate
from delivery.handover import Handover, Overflow, size
from delivery.repeats import REMEMBER_SECONDS
from delivery.transport import (
    CLOSE_SECONDS,
    WRITE_BUFFER_BYTES,
    Connection,
    Disconnected,
)
from delivery.turns import Turns
from servioticy.domain.model import LastUpdate, Timestamp
from servioticy.errors import Unavailable

MAX_UNSENT_BYTES = 8 * 1024 * 1024
STALL_SECONDS = 30.0

ReadPage = Callable[[Admission, Timestamp], Awaitable[list[LastUpdate]]]
"""Reads the next stored updates after a timestamp; empty: that was all. May raise Unavailable,
SemaphoreFull, TenantRests."""

log = logging.getLogger("servioticy.delivery")


class Watcher:
    """A client that watches a stream. All methods belong to the event loop's thread."""

    takes_later = False

    def __init__(
        self,
        connection: Connection,
        admission: Admission,
        backlog: Backlog,
        turns: Turns,
        max_unsent_bytes: int = MAX_UNSENT_BYTES,
    ) -> None:
        self._connection = connection
        self._admission = admission
        self._backlog = backlog
        self._turns = turns
        self._max_unsent_bytes = max_unsent_bytes
        self._handover = None if admission.after is None else Handover()
        self._live = admission.after is None
        self._closing: asyncio.Task[None] | None = None
        self._page: deque[LastUpdate] = deque()
        self._page_bytes = 0
        self._written_bytes = 0
        self._taken_bytes = 0
        self._stalled_since: float | None = None
        self._forgetting: asyncio.TimerHandle | None = None

    @property
    def tenant(self) -> int:
        """Return the tenant who watches."""
        return self._admission.tenant

    def kept_bytes(self) -> int:
        """Return how many bytes are kept for it: held back, read, unsent, and remembered."""
        handover = self._handover
        kept = 0 if handover is None else handover.held_bytes + handover.remembered_bytes
        return kept + self._page_bytes + self._connection.unsent_bytes()

    def offer(self, live: LiveUpdate) -> None:
        """Send the update, or hold it back; or close: a client may not cost the others anything.

        What the history gave already is not sent again.
        """
        if self._closing is not None:
            return
        update = live.update
        if self._admission.foreign and live.version != self._admission.version:
            self.close(Ending.DOCUMENT_CHANGED)
        elif not self._live and self._handover is not None:
            self._hold(self._handover, update)
        elif self._connection.unsent_bytes() > self._max_unsent_bytes:
            self.close(Ending.READS_TOO_SLOWLY)
        elif self._handover is None or not self._handover.is_repeat(update):
            self._connection.write(update)
            self._written_bytes += len(update.document)
            if self._connection.unsent_bytes():
                self._backlog.update(self)

    def close(self, ending: Ending) -> None:
        """Tell the client why and close; cut it off where it does not take even that."""
        if self._closing is None:
            loop = asyncio.get_running_loop()
            self._closing = loop.create_task(self._connection.close(ending))
            loop.call_later(CLOSE_SECONDS, self._connection.abort)

    async def run(self, read_page: ReadPage) -> None:
        """Send the history, and return when the client has gone or is closed."""
        catching_up = asyncio.create_task(self._catch_up(read_page))
        try:
            await self._connection.wait_closed()
        finally:
            catching_up.cancel()
            await asyncio.wait([catching_up])
            self._handover = None
            if self._forgetting is not None:
                self._forgetting.cancel()  # it would keep us, and the connection, until then
            self._backlog.remove(self)

    def check_progress(self, now: float) -> None:
        """Abort it where it has not taken a byte for too long, however few wait for it."""
        unsent = self._connection.unsent_bytes()
        taken = self._written_bytes - unsent
        if not unsent or taken > self._taken_bytes:
            self._stalled_since = None
        elif self._stalled_since is None:
            self._stalled_since = now
        elif now - self._stalled_since >= STALL_SECONDS:
            self._connection.abort()
        self._taken_bytes = taken

    def drop(self) -> None:
        """Keep nothing for it: forget what it got, where that is most of it; else close it."""
        handover = self._handover
        if handover is not None and handover.remembered_bytes * 2 >= self.kept_bytes():
            handover.forget()
            return
        if handover is not None:
            handover.release()
            handover.forget()
        self._page.clear()
        self._page_bytes = 0
        self.close(Ending.OVER_BUDGET)
        if self._connection.unsent_bytes() > WRITE_BUFFER_BYTES:
            self._connection.abort()

    async def _catch_up(self, read_page: ReadPage) -> None:
        handover, after = self._handover, self._admission.after
        if handover is None or after is None:
            return
        try:
            await self._send_history(handover, after, read_page)
        except (Unavailable, SemaphoreFull):
            self.close(Ending.HISTORY_SILENT)
        except TenantRests:
            self.close(Ending.QUOTA_USED_UP)
        except Disconnected:
            pass
        except Exception:
            log.exception("catch_up_failed")
            self.close(Ending.FAILED)

    async def _send_history(
        self, handover: Handover, after: Timestamp, read_page: ReadPage
    ) -> None:
        """Send what is stored, then what came meanwhile; from then on it is live."""
        while page := await self._next_page(after, read_page):
            after = page[-1].timestamp
            handover.note_read(page)
            await self._send(page)
        while held := handover.release():
            await self._send(held)
        self._live = True  # nothing was awaited since `release` found nothing more
        later = asyncio.get_running_loop().call_later
        self._forgetting = later(REMEMBER_SECONDS, self._forget)

    async def _next_page(self, after: Timestamp, read_page: ReadPage) -> list[LastUpdate]:
        """A turn is a page, taken before it is read: what waits for a turn is kept nowhere."""
        await self._turns.take(self.tenant)
        return await read_page(self._admission, after)

    async def _send(self, updates: list[LastUpdate]) -> None:
        """Send as fast as the client takes them; those that still wait count as kept."""
        self._page = deque(updates)
        self._page_bytes = sum(map(size, updates))
        updates.clear()
        self._backlog.update(self)
        while self._page:
            update = self._page.popleft()
            self._written_bytes += len(update.document)
            self._page_bytes -= size(update)
            await self._connection.send(update)
            self._backlog.update(self)

    def _hold(self, handover: Handover, update: LastUpdate) -> None:
        try:
            handover.hold(update)
        except Overflow:
            self.close(Ending.HISTORY_TOO_SLOW)
        else:
            self._backlog.update(self)

    def _forget(self) -> None:
        # By now whatever the history gave has been emitted, or is emitted again.
        if self._handover is not None:
            self._handover = None
            self._backlog.update(self)
