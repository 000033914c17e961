"""Other processes of the platform that clients are connected to: what is told, and what is heard.

Two threads, as one of them waits: whoever comes to the loop has no part in them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from delivery.repeating import for_ever
from servioticy.ports.peers import COME, Peers, Row, Told

SILENCE_SECONDS = 0.5
"""Between two looks whether it is time to stop, or who is there."""
LOOK_SECONDS = 1.0
"""So late at most it is seen that another has gone."""

log = logging.getLogger("servioticy.delivery")

T = TypeVar("T")


class Part(Protocol):
    """Something that processes tell each other of. All methods belong to the loop's thread."""

    kind: str

    def came(self) -> None:
        """Note that this process hears others from now on, and has missed what was told before."""

    def other_came(self, process: int) -> None:
        """Note that another does, which knows nothing of what this one has told before."""

    def heard(self, told: Told) -> None:
        """Note what another tells."""

    def are_there(self, others: frozenset[int]) -> None:
        """Note which others there are."""


class Peering:
    """Tells, and hears, for all parts. All methods belong to the loop's thread."""

    def __init__(self, peers: Peers) -> None:
        self.others: frozenset[int] = frozenset()
        """Which other processes there are, as far as is known."""
        self._peers = peers
        self._parts: dict[str, Part] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._threads = ThreadPoolExecutor(1, "peers-heard"), ThreadPoolExecutor(1, "peers-told")
        self._looked = 0.0
        self._is_to_look = False

    def add(self, part: Part) -> None:
        """Let it hear what is of its kind."""
        self._parts[part.kind] = part

    def start(self) -> None:
        """Hear from now on."""
        self._tasks = [asyncio.create_task(for_ever(self._listen, "peers"))]

    def run(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do this for ever, until stopped; where the store is away again after a second."""
        self._tasks.append(asyncio.create_task(for_ever(work, "peers")))

    async def stop(self) -> None:
        """Tell and hear no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for each in self._threads:
            each.shutdown(wait=False)

    async def tell(self, kind: str, rows: Sequence[Row]) -> int:
        """Tell all others; return the fence. Raises Unavailable, Rejected."""
        return await self._asked(1, partial(self._peers.tell, kind, rows))

    async def _listen(self) -> None:
        told = await self._asked(0, partial(self._peers.heard, SILENCE_SECONDS))
        if told is None:
            self._is_to_look = True
            for part in self._parts.values():
                part.came()
        for each in told or ():
            self._hear(each)
        now = asyncio.get_running_loop().time()
        if self._is_to_look or (self.others and now - self._looked >= LOOK_SECONDS):
            self._looked = now
            await self._look()

    def _hear(self, told: Told) -> None:
        if told.process not in self.others:
            self._is_to_look = True  # it has come, or this is the last of one that has gone
        if told.kind == COME:
            for part in self._parts.values():
                part.other_came(told.process)
        elif told.kind in self._parts:
            try:
                self._parts[told.kind].heard(told)
            except (ValueError, TypeError):  # of a release that tells something else
                log.warning("peers_not_understood", extra={"why": told.kind})

    async def _look(self) -> None:
        self.others = await self._asked(0, self._peers.others)
        self._is_to_look = False
        for part in self._parts.values():
            part.are_there(self.others)

    async def _asked(self, thread: int, ask: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads[thread], ask)
