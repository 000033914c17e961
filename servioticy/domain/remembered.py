"""Remembers what has been worked out, as far as there is room."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Set
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """What has been worked out, while there is room; the least recently used goes first.

    For several threads. The one used last stays, however large it is.
    """

    def __init__(self, room: int) -> None:
        """Make it empty, with `room` for sizes of so much together."""
        self._lock = threading.Lock()
        self._room = room
        self._known: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """Return what was put there; None if it is forgotten."""
        with self._lock:
            found = self._known.get(key)
            if found is None:
                return None
            self._known.move_to_end(key)
            return found[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Keep a value of this size."""
        with self._lock:
            before = self._known.pop(key, None)
            self._room += before[1] if before else 0
            self._known[key] = value, size
            self._room -= size
            while self._room < 0 and len(self._known) > 1:
                self._room += self._known.popitem(last=False)[1][1]

    def drop(self, keys: Set[Key]) -> None:
        """Forget what is there. It takes as long as there is of the fewer of both."""
        with self._lock:
            for key in self._known.keys() & keys:
                self._room += self._known.pop(key)[1]
