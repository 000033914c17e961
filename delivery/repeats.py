"""What the history gave already: the topic may give it once more."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

MAX_REMEMBERED = 20_000
"""So many of the newest are told apart: what is read from the history and not yet emitted is among
the last ones stored."""
REMEMBER_SECONDS = 60.0
"""So long after the end of the history: by then whatever it gave has been emitted, or is emitted
again."""

K = TypeVar("K", bound=Hashable)


class Repeats(Generic[K]):
    """Remembers updates by whatever tells one from another."""

    __slots__ = ("_key_bytes", "_keys")

    def __init__(self, key_bytes: int) -> None:
        """So many bytes it takes to remember one."""
        self._key_bytes = key_bytes
        self._keys: OrderedDict[K, None] | None = None

    @property
    def bytes(self) -> int:
        """Return how many bytes it takes to remember all."""
        return len(self._keys or ()) * self._key_bytes

    def note(self, keys: Iterable[K]) -> None:
        """Remember these, and forget the oldest where they are too many."""
        remembered = OrderedDict() if self._keys is None else self._keys
        for key in keys:
            remembered[key] = None
        while len(remembered) > MAX_REMEMBERED:
            remembered.popitem(last=False)
        self._keys = remembered or None

    def has(self, key: K) -> bool:
        """Return whether it is remembered."""
        return self._keys is not None and key in self._keys

    def clear(self) -> None:
        """Forget all."""
        self._keys = None

    def clear_later(self) -> None:
        """Forget all when there is nothing to be told apart any more."""
        if self._keys:
            asyncio.get_running_loop().call_later(REMEMBER_SECONDS, self.clear)
