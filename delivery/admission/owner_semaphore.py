"""How many may come, in all and of each owner: counted without knowing any connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any


class SemaphoreFull(Exception):
    """No place is left. `own`: the owner has used its part up, others still find a place."""

    def __init__(self, *, own: bool, most: int) -> None:
        super().__init__("there is no place left")
        self.own = own
        self.most = most
        """How many places there are, for the owner or in all."""


class Place:
    """One place of an owner, until it is given back."""

    __slots__ = ("_owner", "_semaphore")

    def __init__(self, semaphore: OwnerSemaphore, owner: Hashable) -> None:
        self._semaphore: OwnerSemaphore | None = semaphore
        self._owner = owner

    def release(self) -> None:
        """Give it back; harmless if that is done."""
        semaphore, self._semaphore = self._semaphore, None
        if semaphore is not None:
            semaphore.release(self._owner)


class OwnerSemaphore:
    """A semaphore with so many places in all, and so many for each owner; nobody waits for one."""

    def __init__(self, in_all: int, each: int) -> None:
        self._in_all = in_all
        self._each = each
        self.others: Mapping[Any, int] = {}
        """Owners that have another number of places."""
        self.elsewhere: Counter[Any] = Counter()
        """How many of an owner's places are taken at other processes, as far as is known."""
        self._in_use: Counter[Hashable] = Counter()
        self._total = 0

    def acquire(self, owner: Hashable) -> None:
        """Take one place for the owner, to be released later. Raises SemaphoreFull."""
        most = self.others.get(owner, self._each)
        if self._in_use[owner] + self.elsewhere[owner] >= most:
            raise SemaphoreFull(own=True, most=most)
        if self._total >= self._in_all:
            raise SemaphoreFull(own=False, most=self._in_all)
        self._in_use[owner] += 1
        self._total += 1

    def place(self, owner: Hashable) -> Place:
        """Take one place for the owner. Raises SemaphoreFull."""
        self.acquire(owner)
        return Place(self, owner)

    def release(self, owner: Hashable) -> None:
        """Give one of the owner's places back."""
        self._total -= 1
        self._in_use[owner] -= 1
        if not self._in_use[owner]:
            # Tenants come and go; an empty entry each would be a leak.
            del self._in_use[owner]

    def in_use(self) -> dict[Any, int]:
        """Return how many places are taken here by each owner that has some."""
        return dict(self._in_use)

    def __len__(self) -> int:
        """Return how many places are in use."""
        return self._total
