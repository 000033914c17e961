"""Connections that watch nothing: not yet, or not at all. They may cost next to nothing.

A connection that has said nothing, or was refused and does not go, is pending. Where too many
are, the one that has been pending longest is ended, of the address that has most of them: so
silence never keeps out anybody who speaks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from delivery.turns import Turns

STRANGERS_AT_ONCE = 2
STRANGERS_SECONDS = 0.001
"""So many addresses have a turn within these: one of one connection."""
STRANGERS_PIECE = 4_096
"""Bytes of a turn."""


class Caller(Protocol):
    """A client's connection, from its first byte on, whatever comes of it."""

    address: str
    """The client's network address."""

    def abort(self) -> None:
        """End the connection at once; what the client has not taken is lost."""

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Call this once when the connection is lost; at once, if it is lost already."""


class PendingConnections:
    """Knows every connection of a process, and which are pending, by address, oldest first."""

    def __init__(self, max_pending: int) -> None:
        self.turns = Turns(STRANGERS_AT_ONCE, STRANGERS_SECONDS)
        """Those of all who have not been let in, by address: their part of the loop."""
        self.most = max_pending
        self._pending: dict[str, dict[Caller, None]] = {}
        self._count = 0
        self._connected: set[Caller] = set()

    def connected(self, caller: Caller) -> None:
        """Note that somebody has connected, and has said nothing yet."""
        self._connected.add(caller)
        self.add(caller)

    def disconnected(self, caller: Caller) -> None:
        """Forget a connection that is lost."""
        self._connected.discard(caller)
        self.remove(caller)

    def abort_all(self) -> None:
        """End every connection at once, those that watch a stream included."""
        for caller in list(self._connected):
            caller.abort()

    def add(self, caller: Caller) -> None:
        """Count a connection as pending; end another one where that is one too many."""
        if caller not in self._connected:
            return
        self._pending.setdefault(caller.address, {})[caller] = None
        self._count += 1
        if self._count > self.most:
            self.make_room()

    def make_room(self) -> None:
        """End the one that has been pending longest, of the address that has most of them."""
        if self._pending:
            of_one_address = max(self._pending.values(), key=len)
            oldest = next(iter(of_one_address))
            self.remove(oldest)
            oldest.abort()

    def remove(self, caller: Caller) -> None:
        """Count a connection as pending no longer; harmless if it was not."""
        of_one_address = self._pending.get(caller.address, {})
        if caller in of_one_address:
            del of_one_address[caller]
            self._count -= 1
            if not of_one_address:
                del self._pending[caller.address]

    def __len__(self) -> int:
        """Return how many connections are pending."""
        return self._count
