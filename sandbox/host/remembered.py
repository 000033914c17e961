"""A memory of bounded length: what was longest unused is forgotten."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Remembered(OrderedDict[K, V]):
    """A dict of at most so many entries, in order of their last use()."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def use(self, key: K, value: V) -> V:
        """Keep the value under the key, as the last used."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)
        return value
