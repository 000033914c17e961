"""Connections by how long they have been in one state; all in it have the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Deadlines(Generic[T]):
    """Who began first is late first, so that nobody has to look at all of them."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: dict[T, float] = {}

    def begin(self, one: T) -> None:
        """From now on; a second time: anew."""
        self._since.pop(one, None)
        self._since[one] = self._clock()

    def end(self, one: T) -> None:
        """It is in time, or gone."""
        self._since.pop(one, None)

    def late(self) -> list[T]:
        """Take those out whose time is over."""
        before = self._clock() - self._seconds
        found = []
        for one, since in self._since.items():
            if since > before:
                break
            found.append(one)
        for one in found:
            del self._since[one]
        return found

    def oldest(self, at_least: float = 0.0) -> T | None:
        """Return who has been there longest, if it is so many seconds."""
        one, since = next(iter(self._since.items()), (None, 0.0))
        return one if self._clock() - since >= at_least else None
