"""Questions that block, a few at a time: whoever asks much waits for its own, not for others'.

Those who wait are served in turn, one question of each. So a tenant with a thousand questions
delays the single question of another by one, not by a thousand.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from delivery.shares import Shares

R = TypeVar("R")


class Turns:
    """Runs blocking questions in threads of its own. All methods belong to the loop's thread."""

    def __init__(
        self,
        name: str,
        at_once: int,
        max_waiting: int = sys.maxsize,
        max_waiting_each: int = sys.maxsize,
    ) -> None:
        self._threads = ThreadPoolExecutor(at_once, name)
        self._free = at_once
        self._places = Shares(max_waiting, max_waiting_each)
        self._queues: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()

    async def ask(self, who: Hashable, question: Callable[[], R]) -> R:
        """The answer, when it is this asker's turn. Raises Full, and what the question raises."""
        await self._turn(who)
        job = asyncio.get_running_loop().run_in_executor(self._threads, question)
        job.add_done_callback(self._answered)
        # Who does not wait any longer does not make the thread free: the turn ends with the job.
        return await asyncio.shield(job)

    async def _turn(self, who: Hashable) -> None:
        if self._free:
            self._free -= 1
            return
        self._places.take(who)
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(who, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it came in this very moment
                self._pass_on()
            else:
                self._leave(who, turn)
            raise

    def _leave(self, who: Hashable, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(who, deque())
        if turn not in queue:
            return  # passed over already
        queue.remove(turn)
        self._places.give_back(who)
        if not queue:
            del self._queues[who]

    def _answered(self, job: asyncio.Future[R]) -> None:
        if not job.cancelled():
            job.exception()  # has been looked at, even where nobody waits for it any more
        self._pass_on()

    def _pass_on(self) -> None:
        while self._queues:
            who, queue = self._queues.popitem(last=False)
            turn = queue.popleft()
            self._places.give_back(who)
            if queue:
                self._queues[who] = queue  # behind all the others
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
