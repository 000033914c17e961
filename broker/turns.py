"""Whose turn it is in the loop: nobody fills it, however much of his has come already.

What has been read from a socket is there to be worked on without waiting, so a connection that
sends a lot would never let go of the loop. Each may work on so many frames and bytes, and then
waits for its next turn. Turns go round by tenant, then by connection, one in each pass of the
loop. All who have not said who they are have turns together, by network address, and one a
millisecond: that is their part of the loop, however many they are.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable

FRAMES, BYTES = 64, 65_536
"""Of a turn."""
STRANGERS_FRAMES, STRANGERS_BYTES = 8, 8_192
STRANGERS_SECONDS = 0.001
"""Between two turns of strangers."""
CATCH_UP = 20
"""So many of them at most are made up for where the loop was woken late, as on a busy machine."""
FRAME_BYTES = 64
"""A frame of a stranger counts as so many at least: each costs time, however short it is."""
MAX_STRANGERS_BYTES = 262_144
"""So much a connection may send before it has said whose it is."""

Waiting = OrderedDict[Hashable, deque["asyncio.Future[None]"]]


class Turns:
    """Gives turns. All methods belong to the event loop's thread."""

    def __init__(self) -> None:
        self.given = 0
        """How many turns there were so far."""
        self._tenants: Waiting = OrderedDict()
        self._strangers: Waiting = OrderedDict()
        self._is_going = False
        self._is_resting = False
        """Strangers had a turn just now."""
        self._since = 0.0
        """When that was."""
        self._due = 1
        """How many they have next."""

    async def of_tenant(self, tenant: int) -> None:
        """Return when it is the turn of one of this tenant's connections."""
        await self._next(self._tenants, tenant)

    async def of_stranger(self, address: str) -> None:
        """Return when it is the turn of a stranger of this network address."""
        await self._next(self._strangers, address)

    async def _next(self, waiting: Waiting, owner: Hashable) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.setdefault(owner, deque()).append(turn)
        self._go_on()
        await turn

    def _go_on(self) -> None:
        is_wanted = self._tenants or (self._strangers and not self._is_resting)
        if is_wanted and not self._is_going:
            self._is_going = True
            asyncio.get_running_loop().call_soon(self._give)

    def _give(self) -> None:
        """Give a turn, and the next one when all the others in the loop have had theirs."""
        self._is_going = False
        if self._tenants:
            self._begin(self._tenants)
        if self._strangers and not self._is_resting:
            self._is_resting = True
            loop = asyncio.get_running_loop()
            loop.call_later(STRANGERS_SECONDS, self._rested)
            self._since, due, self._due = loop.time(), self._due, 1
            for _ in range(due):
                self._begin(self._strangers)
        self._go_on()

    def _rested(self) -> None:
        self._is_resting = False
        if self._strangers:
            passed = asyncio.get_running_loop().time() - self._since
            self._due = max(1, min(CATCH_UP, int(passed / STRANGERS_SECONDS)))
        self._go_on()

    def _begin(self, waiting: Waiting) -> None:
        while waiting:
            owner, turns = waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                waiting[owner] = turns  # behind all the others
            if not turn.done():  # who waited may be gone
                turn.set_result(None)
                self.given += 1
                return


class Part:
    """What one connection has had of its turn."""

    def __init__(self, turns: Turns, address: str) -> None:
        self._turns = turns
        self._address = address
        self.tenant: int | None = None
        """Whose it is, once that is known."""
        self._frames = self._bytes = 0
        self.strange_bytes = 0
        """Of all it has sent before that was known."""

    async def next_turn(self) -> None:
        """Return when it is this connection's turn."""
        if self.tenant is None:
            await self._turns.of_stranger(self._address)
            self._frames, self._bytes = STRANGERS_FRAMES, STRANGERS_BYTES
        else:
            await self._turns.of_tenant(self.tenant)
            self._frames, self._bytes = FRAMES, BYTES

    async def frame(self) -> None:
        """Return when it may work on a frame."""
        if self._frames <= 0 or self._bytes <= 0:
            await self.next_turn()
        self._frames -= 1
        if self.tenant is None:
            self.strange_bytes += FRAME_BYTES

    async def read(self, size: int) -> None:
        """Return when it may work on so many bytes that it has sent."""
        if self._bytes <= 0:
            await self.next_turn()
        self._bytes -= size
        if self.tenant is None:
            self.strange_bytes += size
