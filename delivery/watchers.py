"""Who watches which stream. Plain bookkeeping: knows no socket and no clock."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from servioticy.domain.model import StreamRef

W = TypeVar("W", bound=Hashable)


class Watchers(Generic[W]):
    """The watchers of each stream, in the order in which they came."""

    def __init__(self) -> None:
        self._by_stream: dict[StreamRef, dict[W, None]] = {}

    def add(self, stream: StreamRef, watcher: W) -> None:
        """From now on it is among the watchers of the stream; twice is once."""
        self._by_stream.setdefault(stream, {})[watcher] = None

    def remove(self, stream: StreamRef, watcher: W) -> None:
        """It is not any more; harmless if it was not."""
        watchers = self._by_stream.get(stream, {})
        watchers.pop(watcher, None)
        if not watchers:
            # Streams come and go; an empty entry each would be a leak.
            self._by_stream.pop(stream, None)

    def of(self, stream: StreamRef) -> list[W]:
        """Those of the stream, as they stand now: the list may be kept while others come."""
        return list(self._by_stream.get(stream, ()))

    def __iter__(self) -> Iterator[StreamRef]:
        """The streams that somebody watches."""
        return iter(self._by_stream)

    def __len__(self) -> int:
        """How many watchers there are."""
        return sum(map(len, self._by_stream.values()))
