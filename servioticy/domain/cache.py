"""Values that are kept while there is room, and while somebody uses them."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

AT_ONCE = 50
"""So many values are forgotten before others have the cache again."""


class _Kept(Generic[Value]):
    __slots__ = ("size", "used", "value")

    def __init__(self, value: Value, size: int, used: float) -> None:
        self.value, self.size, self.used = value, size, used


class Cache(Generic[Key, Value]):
    """A cache keeps a bounded number of bytes of values. Threads may share it."""

    def __init__(self, room: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Make an empty cache with room for so many bytes."""
        self._lock = threading.Lock()
        self._room = room
        self._clock = clock
        self._bytes = 0
        self._kept: OrderedDict[Key, _Kept[Value]] = OrderedDict()
        """The least recently used first."""

    def get(self, key: Key) -> Value | None:
        """Return what was put there; None if it is forgotten."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            found.used = self._clock()
            return found.value

    def put(self, key: Key, value: Value, size: int) -> None:
        """Keep a value of so many bytes; one that is larger than the room is not kept.

        The least recently used go for it.
        """
        with self._lock:
            self._drop(self._kept.pop(key, None))
            if size > self._room:
                return
            self._kept[key] = _Kept(value, size, self._clock())
            self._bytes += size
            while self._bytes > self._room:
                self._drop(self._kept.popitem(last=False)[1])

    def forget_unused(self, seconds: float) -> int:
        """Forget what nobody has got or put for so long; return how many values."""
        before, forgotten = self._clock() - seconds, 0
        while found := self._forget_some(before):
            forgotten += found
        return forgotten

    def _forget_some(self, before: float) -> int:
        """A few, so that nobody waits for long who wants something of it meanwhile."""
        gone: list[_Kept[Value]] = []
        with self._lock:
            while len(gone) < AT_ONCE and self._kept:
                key, kept = next(iter(self._kept.items()))
                if kept.used > before:
                    break
                gone.append(self._kept.pop(key))
                self._drop(kept)
        return len(gone)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def _drop(self, gone: _Kept[Value] | None) -> None:
        if gone is not None:
            self._bytes -= gone.size
