"""Whoever was let in stays while that is right: who is revoked, or may read no more, is ended.

The store tells what changes. Whoever that is about is looked up anew, many in one question, by
the same rules as when he came; when a token runs out, its holders are, and now and then all are,
in case something was not heard. So what it costs depends on what changes, and not on how many
are connected.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, Protocol, TypeVar

from delivery.endings import Ending
from delivery.repeating import for_ever
from servioticy.ports.access_changes import AccessChange, AccessChanges
from servioticy.ports.addresses import Address, Addresses, Lookup

SILENCE_SECONDS = 1.0
"""Between two looks whether it is time to stop."""
RECHECK_SECONDS = 60.0
AT_ONCE = 500
"""Looked up with one question."""

log = logging.getLogger("servioticy.delivery")

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Grounds(Protocol):
    """On what somebody was let in."""

    @property
    def lookup(self) -> Lookup:
        """The token, and the Service Object and the stream that it was shown for, if any."""

    @property
    def known_by(self) -> bytes:
        """The SHA-256 by which it is told that the token, or the person, is good no more."""

    @property
    def expires_in(self) -> float | None:
        """Seconds for which the token was good when the store answered; None: without end."""

    @property
    def changes(self) -> int:
        """How many changes had been heard of before the store was asked."""

    def ending(self, address: Address | None) -> Ending | None:
        """Return why he has to go by what the store says now; None: he may stay."""


class Stay:
    """Somebody who was let in, until he has gone."""

    __slots__ = ("end", "grounds", "known_by", "look", "service_objects", "timer")

    def __init__(
        self,
        grounds: Grounds,
        end: Callable[[Ending], None],
        look: Callable[[], None] | None,
        objects: Iterable[str],
    ) -> None:
        self.grounds = grounds
        self.end = end
        self.look = look
        self.known_by = grounds.known_by
        service_object = grounds.lookup.service_object
        named = () if service_object is None else (service_object,)
        self.service_objects = tuple({*objects, *named})
        self.timer: asyncio.TimerHandle | None = None


class Stays:
    """All who were let in. All methods belong to the event loop's thread."""

    def __init__(self, addresses: Addresses) -> None:
        self.changes = 0
        """How many changes were heard of so far."""
        self._addresses = addresses
        self._by_caller: _Index[bytes] = _Index()
        self._by_service_object: _Index[str] = _Index()
        self._due: dict[Stay, None] = {}
        self._is_due = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        # One that listens, and one that asks: whoever comes has no part in them.
        self._threads = ThreadPoolExecutor(2, "access")

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._by_caller)

    def start(self, told: AccessChanges | None) -> None:
        """Look after all from now on. Without `told`, each is only looked up now and then."""
        works: list[Callable[[], Awaitable[None]]] = [self._look_up, self._recheck]
        if told is not None:
            works.append(partial(self._listen, told))
        self._tasks = [asyncio.create_task(for_ever(each, "stays")) for each in works]

    async def stop(self) -> None:
        """Look after nobody any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown(wait=False)

    def begin(
        self,
        grounds: Grounds,
        end: Callable[[Ending], None],
        look: Callable[[], None] | None = None,
        objects: Iterable[str] = (),
    ) -> Stay:
        """Look after somebody until `leave`; `end` is called once where he has to go.

        `look` is called when he was looked up and may stay; that is also done when these other
        Service Objects change.
        """
        stay = Stay(grounds, end, look, objects)
        self._by_caller.add(stay.known_by, stay)
        for name in stay.service_objects:
            self._by_service_object.add(name, stay)
        self._time(stay, grounds.expires_in)
        if grounds.changes != self.changes:
            self._ask([stay])  # what was heard since may be about him
        return stay

    def leave(self, stay: Stay) -> None:
        """Forget somebody who has gone; harmless if he is forgotten."""
        self._by_caller.remove(stay.known_by, stay)
        for name in stay.service_objects:
            self._by_service_object.remove(name, stay)
        self._due.pop(stay, None)
        self._time(stay, None)

    def note(self, change: AccessChange) -> None:
        """Look up those whom a change may be about."""
        self.changes += 1
        if change.everything:
            self._ask(self._by_caller)
        for caller in change.callers:
            self._ask(self._by_caller.of(caller))
        for name in change.service_objects:
            self._ask(self._by_service_object.of(name))

    def _ask(self, stays: Iterable[Stay]) -> None:
        self._due |= dict.fromkeys(stays)
        self._is_due.set()

    def _time(self, stay: Stay, expires_in: float | None) -> None:
        """Look him up when his token runs out, by the clock of the store."""
        if stay.timer is not None:
            stay.timer.cancel()
            stay.timer = None
        if expires_in is not None:
            later = asyncio.get_running_loop().call_later
            stay.timer = later(max(0.0, expires_in), self._ask, [stay])

    async def _listen(self, told: AccessChanges) -> None:
        change = await self._blocking(partial(told.wait, SILENCE_SECONDS))
        if any(change):
            self.note(change)

    async def _recheck(self) -> None:
        await asyncio.sleep(RECHECK_SECONDS)
        self._ask(self._by_caller)

    async def _look_up(self) -> None:
        """Look up those whose turn it is, and end those who have to go."""
        await self._is_due.wait()
        these = list(itertools.islice(self._due, AT_ONCE))
        for stay in these:
            del self._due[stay]
        if not self._due:
            self._is_due.clear()
        wanted = list({stay.grounds.lookup for stay in these})
        try:
            answers = await self._blocking(partial(self._addresses.addresses, wanted))
        except BaseException:
            self._ask(stay for stay in these if stay in self._by_caller.of(stay.known_by))
            raise
        found = dict(zip(wanted, answers, strict=True))
        for stay in these:
            if stay in self._by_caller.of(stay.known_by):
                try:
                    self._judge(stay, found[stay.grounds.lookup])
                except Exception:
                    log.exception("stay_failed")

    async def _blocking(self, ask: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, ask)

    def _judge(self, stay: Stay, address: Address | None) -> None:
        ending = stay.grounds.ending(address)
        if ending is None:
            self._time(stay, address.expires_in if address else None)
            if stay.look is not None:
                stay.look()
            return
        self.leave(stay)
        stay.end(ending)


class _Index(Generic[K]):
    """Stays by something that a change may name."""

    def __init__(self) -> None:
        self._held: dict[K, dict[Stay, None]] = {}
        self._count = 0

    def add(self, key: K, stay: Stay) -> None:
        self._held.setdefault(key, {})[stay] = None
        self._count += 1

    def remove(self, key: K, stay: Stay) -> None:
        held = self._held.get(key, {})
        if stay in held:
            del held[stay]
            self._count -= 1
        if not held:
            self._held.pop(key, None)

    def of(self, key: K) -> dict[Stay, None]:
        return self._held.get(key, {})

    def __iter__(self) -> Iterator[Stay]:
        return itertools.chain.from_iterable(self._held.values())

    def __len__(self) -> int:
        return self._count
