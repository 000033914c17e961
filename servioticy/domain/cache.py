"""Values that are kept while there is room: the least recently used are forgotten."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

from cachetools import LRUCache

Key = TypeVar("Key")
Value = TypeVar("Value")


class Cache(Generic[Key, Value]):
    """A cache keeps a bounded number of bytes of values. Threads may share it."""

    def __init__(self, room: int) -> None:
        """Make an empty cache with room for so many bytes."""
        self._lock = threading.Lock()
        self._sized: LRUCache[Key, tuple[Value, int]] = LRUCache(room, lambda each: each[1])

    def get(self, key: Key) -> Value | None:
        """Return what was put there; None if it is forgotten."""
        with self._lock:
            found = self._sized.get(key)
            return None if found is None else found[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Keep a value of so many bytes; one that is larger than the room is not kept."""
        with self._lock:
            if size <= self._sized.maxsize:
                self._sized[key] = (value, size)
            else:
                self._sized.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._sized.clear()
