"""What all transports share: who may come, who watches which stream, and what is kept for them.

One thread reads what the pipeline emits, the event loop sends it, and a few threads ask the
stores whatever may block.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from delivery.admission.capacity import Capacity
from delivery.admission.fair_executor import FairExecutor
from delivery.admission.reception import Reception
from delivery.admission.requests import Admission
from delivery.admission.resting import Resting
from delivery.backlog import Backlog
from delivery.fanout import FanOut, Note, Subscriber, unheard
from delivery.feeds.feeds import Feeds, Receiver
from delivery.transport import CLOSE_SECONDS, Connection, Transport
from delivery.turns import Turns
from delivery.watcher import MAX_UNSENT_BYTES, Watcher
from delivery.watchers import Watchers
from servioticy.domain.model import LastUpdate, Timestamp
from servioticy.ports.access_changes import AccessChanges
from servioticy.ports.addresses import Addresses
from servioticy.ports.cursors import Cursors
from servioticy.ports.emitted import Emitted, EmittedPages
from servioticy.ports.history import History

HISTORY_THREADS = 4
PAGE_UPDATES = 500
PAGE_BYTES = 256 * 1024
BACKLOG_BYTES = 256 * 1024 * 1024
CHECK_SECONDS = 1.0


class Hub:
    """Connects transports with the stream of emitted updates.

    `publish` may be called from any thread but the event loop's; all else belongs to the loop.
    """

    def __init__(
        self,
        catalog: Addresses,
        history: History,
        capacity: Capacity,
        *,
        resting: Resting | None = None,
        note: Note = unheard,
        access_changes: AccessChanges | None = None,
        max_backlog_bytes: int = BACKLOG_BYTES,
        max_unsent_bytes: int = MAX_UNSENT_BYTES,
    ) -> None:
        """`resting` and `note` are those of the fan-out; `access_changes` tells at once who may
        stay no longer, else that is seen later.
        """
        self.connections = 0
        """Clients that are served now."""
        self.resting = resting or Resting()
        self.turns = Turns()
        self.reception = Reception(catalog, capacity, self.resting)
        self.watchers: Watchers[Subscriber] = Watchers()
        self.backlog = Backlog(max_backlog_bytes)
        self.fanout = FanOut(self.watchers.of, resting=self.resting, note=note)
        self.history_calls = FairExecutor("history", HISTORY_THREADS)
        self._history = history
        self._access_changes = access_changes
        self._max_unsent_bytes = max_unsent_bytes
        self._transports: list[Transport] = []
        self._checking: asyncio.Task[None] | None = None

    def feeds(
        self, store: Cursors, pages: EmittedPages, receivers: Mapping[str, Receiver]
    ) -> Feeds:
        """Return the feeds of durable subscriptions, which stand on the same stream of updates."""
        shared = self.fanout, self.watchers, self.backlog, self.history_calls
        return Feeds(store, pages, self._history, *shared, receivers)

    async def start(self, transports: Sequence[Transport]) -> None:
        """Start to send, and all transports. Raises OSError where one of them cannot start."""
        self.fanout.start()
        self.reception.stays.start(self._access_changes)
        self._checking = asyncio.create_task(self._check_progress())
        for transport in transports:
            await transport.start()
            self._transports.append(transport)

    @property
    def is_ready(self) -> bool:
        """Return whether clients are let in; a transport that has a health tells it."""
        return self.reception.is_open

    def let_in(self) -> None:
        """Let clients in from now on: what is emitted is being read."""
        self.reception.is_open = True

    def publish(self, records: Sequence[Emitted]) -> None:
        """Send a batch to whoever watches; waits while too much is on its way."""
        self.fanout.publish(records)

    async def serve(self, admission: Admission, connection: Connection) -> None:
        """Send a client what it was admitted to, and return when its connection is closed."""
        watcher = Watcher(connection, admission, self.backlog, self.turns, self._max_unsent_bytes)
        stay = self.reception.stays.begin(admission, watcher.close)
        self.watchers.add(admission.stream, watcher)
        self.connections += 1
        try:
            await watcher.run(self._read_page)
        finally:
            self.connections -= 1
            self.watchers.remove(admission.stream, watcher)
            self.reception.stays.leave(stay)

    async def stop(self) -> None:
        """Stop to send, and all transports; whoever does not go in time is cut off."""
        self.fanout.stop()
        if self._checking is not None:
            self._checking.cancel()
        abort = self.reception.pending.abort_all
        asyncio.get_running_loop().call_later(CLOSE_SECONDS, abort)
        await asyncio.gather(*(transport.stop() for transport in self._transports))
        await self.reception.stays.stop()

    async def _read_page(self, admission: Admission, after: Timestamp) -> list[LastUpdate]:
        """Read a page for a socket. It counts as given: what is read is what costs."""
        self.resting.check(admission.tenant)
        read = partial(self._history.updates_after, admission.key, after, PAGE_UPDATES, PAGE_BYTES)
        page = await self.history_calls.run(admission.tenant, read)
        if page:
            self.fanout.note(admission.tenant, admission.key.tenant, admission.stream, len(page))
        return page

    async def newest(self, admission: Admission) -> Timestamp | None:
        """Return the largest timestamp that is stored of a stream. Raises Unavailable."""
        read = partial(self._history.newest, admission.key)
        return await self.history_calls.run(admission.tenant, read)

    async def _check_progress(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            self.backlog.check_progress(asyncio.get_running_loop().time())
