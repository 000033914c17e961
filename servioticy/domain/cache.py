"""Values that are kept while there is room: the least used are forgotten."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Cache(Generic[Key, Value]):
    """A bounded number of bytes of values; threads may share it."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """What was put there, if it is still kept."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Keep a value of so many bytes; one that is larger than the room is not kept."""
        with self._lock:
            replaced = self._kept.pop(key, None)
            self._room += replaced[1] if replaced else 0
            self._kept[key] = (value, size)
            self._room -= size
            while self._room < 0:
                _, (_, freed) = self._kept.popitem(last=False)
                self._room += freed

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._room += sum(size for _, size in self._kept.values())
            self._kept.clear()
