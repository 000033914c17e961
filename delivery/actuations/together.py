"""What many lanes ask the store for, as few statements: a tenant's go together.

While one question is on its way, the next ones of the same tenant gather. So a single device is
answered at once, and a thousand of them cost little more than one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from servioticy.domain.actuations import State
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.actuations import Actuation, Actuations

WINDOW = 16
"""On their way to one device at once."""
MOST = 100
"""Lanes that are answered at once: each may have so many actuations of 16 KiB to read."""

T = TypeVar("T")


class Ask(Protocol):
    """Asks the store in a thread of its own, in the tenant's turn. Raises Unavailable."""

    def __call__(self, tenant: int, call: Callable[[], T], /) -> Awaitable[T]:
        """Return what the call returns."""


class _Moves:
    """Actuations of one device that have come to a state."""

    def __init__(self, ids: Sequence[str], state: State) -> None:
        self.ids = ids
        self.state = state
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class _Question:
    """What one device has still to get."""

    def __init__(self, service_object: str) -> None:
        self.service_object = service_object
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Sequence[Actuation]] = loop.create_future()


class Together:
    """Asks for lanes. All methods belong to the event loop's thread, and raise Unavailable."""

    def __init__(self, store: Actuations, ask: Ask, clock: Callable[[], int]) -> None:
        """`clock` tells the milliseconds since 1970."""
        self._store = store
        self._ask = ask
        self._clock = clock
        self._gathered: dict[int, list[_Moves | _Question]] = {}
        self._working: dict[int, asyncio.Task[None]] = {}

    async def waiting(self, key: ServiceObjectKey) -> Sequence[Actuation]:
        """Return the first ones that a device has still to get, in order."""
        question = _Question(key.id)
        self._gather(key.tenant, question)
        return await question.answer

    async def moved(self, key: ServiceObjectKey, ids: Sequence[str], state: State) -> None:
        """Note that these have come to a state, where they had not come so far."""
        moves = _Moves(ids, state)
        self._gather(key.tenant, moves)
        await moves.answer

    async def stop(self) -> None:
        """Ask no more."""
        tasks = list(self._working.values())
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _gather(self, tenant: int, asked: _Moves | _Question) -> None:
        self._gathered.setdefault(tenant, []).append(asked)
        if tenant not in self._working:
            self._working[tenant] = asyncio.create_task(self._work(tenant))

    async def _work(self, tenant: int) -> None:
        """Ask as long as there is something to ask."""
        try:
            while gathered := self._gathered.pop(tenant, []):
                now, later = gathered[:MOST], gathered[MOST:]
                if later:
                    self._gathered[tenant] = later
                await self._answer(tenant, now)
        finally:
            del self._working[tenant]

    async def _answer(self, tenant: int, gathered: Sequence[_Moves | _Question]) -> None:
        try:
            found = await self._ask(tenant, partial(self._asked, tenant, gathered))
        except Exception as error:  # noqa: BLE001  those who have asked know what to do
            for each in gathered:
                if not each.answer.done():
                    each.answer.set_exception(error)
            return
        for each in gathered:
            if each.answer.done():
                continue  # who has asked is gone
            if isinstance(each, _Moves):
                each.answer.set_result(None)
            else:
                each.answer.set_result(found.get(each.service_object, ()))

    def _asked(
        self, tenant: int, gathered: Sequence[_Moves | _Question]
    ) -> Mapping[str, Sequence[Actuation]]:
        """Note what has moved, then read what waits."""
        now = self._clock()
        for state in State:
            moves = [each for each in gathered if isinstance(each, _Moves) and each.state is state]
            if ids := [id_ for each in moves for id_ in each.ids]:
                self._store.moved(tenant, ids, state, now)
        asked = [each.service_object for each in gathered if isinstance(each, _Question)]
        return self._store.waiting(tenant, asked, WINDOW, now) if asked else {}
