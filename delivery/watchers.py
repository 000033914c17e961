"""Who watches which stream. This is bookkeeping, and knows no connection and no clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from servioticy.domain.model import StreamRef

W = TypeVar("W")


class Watchers(Generic[W]):
    """Knows the watchers of each stream, in the order in which they came."""

    def __init__(self) -> None:
        self._by_stream: dict[StreamRef, dict[W, None]] = {}

    def add(self, stream: StreamRef, watcher: W) -> None:
        """Count it among the watchers of the stream from now on; twice is once."""
        self._by_stream.setdefault(stream, {})[watcher] = None

    def remove(self, stream: StreamRef, watcher: W) -> None:
        """Count it there no longer; harmless if it was not."""
        watchers = self._by_stream.get(stream, {})
        watchers.pop(watcher, None)
        if not watchers:
            # Streams come and go; an empty entry each would be a leak.
            self._by_stream.pop(stream, None)

    def of(self, stream: StreamRef) -> list[W]:
        """Return those of the stream at this moment: the list stays while others come and go."""
        return list(self._by_stream.get(stream, ()))

    def __iter__(self) -> Iterator[StreamRef]:
        """Go through the streams that somebody watches."""
        return iter(self._by_stream)

    def __len__(self) -> int:
        """Return how many watchers there are."""
        return sum(map(len, self._by_stream.values()))
