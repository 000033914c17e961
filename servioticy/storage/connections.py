"""Connections that threads share: the one used last is given first, and few are kept for nothing.

Each connection is a process of Postgres that has 2 MB and more of memory of its own. Where each of
many threads keeps one, all of them are there for ever after one busy moment; here there are as
many as were in use at once, and those that nobody has used for a while are closed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

KEPT = 2
"""Connections that stay: who comes first after idleness waits for none."""
IDLE_SECONDS = 10.0
"""Without a use for so long others are closed: to open one takes some 10 ms of the processor."""


class Connection:
    """One of psycopg2, with what the server knows on it."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.prepared: set[str] = set()
        """Names of statements that are planned."""
        self.listening: set[str] = set()
        """Channels."""
        self.unused_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether it was open when last used."""
        return not self.raw.closed

    def close(self) -> None:
        """End it; what it holds in the server is let go."""
        if self.is_open:
            self.raw.close()


def _beside(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="connections", daemon=True).start()


class Shared:
    """Those that nobody uses now. Threads may share it."""

    def __init__(
        self,
        idle_seconds: float = IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        begin: Callable[[Callable[[], None]], None] = _beside,
    ) -> None:
        """`begin` lets something be done beside."""
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._sleep = sleep
        self._begin = begin
        self._lock = threading.Lock()
        self._unused: deque[Connection] = deque()
        """The longest unused first."""
        self._is_closing = False

    def take(self) -> Connection | None:
        """Return the one used last; None: there is none, so open one."""
        with self._lock:
            while self._unused:
                found = self._unused.pop()
                if found.is_open:
                    return found
        return None

    def give(self, connection: Connection) -> None:
        """Let others use it. Where there are more than are kept a thread closes them in time."""
        if not connection.is_open:
            return
        with self._lock:
            connection.unused_since = self._clock()
            self._unused.append(connection)
            begins = len(self._unused) > KEPT and not self._is_closing
            self._is_closing = self._is_closing or begins
        if begins:
            self._begin(self._close_in_time)

    def close(self) -> None:
        """Close all that nobody uses: the server has gone, or the program ends."""
        with self._lock:
            gone, self._unused = self._unused, deque()
        for each in gone:
            each.close()

    def _close_in_time(self) -> None:
        while (pause := self._close_old()) is not None:
            self._sleep(pause)

    def _close_old(self) -> float | None:
        """Return after how long to look again; None: no more are there than are kept."""
        now, old = self._clock(), []
        with self._lock:
            while self._is_old(now):
                old.append(self._unused.popleft())
            self._is_closing = len(self._unused) > KEPT
            pause = (
                self._unused[0].unused_since + self._idle_seconds - now
                if self._is_closing
                else None
            )
        for each in old:
            each.close()
        return pause

    def _is_old(self, now: float) -> bool:
        many = len(self._unused) > KEPT
        return many and now - self._unused[0].unused_since >= self._idle_seconds
