"""Streams that came to be after a subscription: they are given from their beginning."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping

from delivery.feeds.place import Place
from servioticy.domain.model import StreamRef
from servioticy.ports.cursors import DurableSubscription

NEW_SECONDS = 600.0
"""So long after its making a stream that begins to belong is given from its beginning."""


class NewStreams:
    """Tells the new ones of one feed, each once."""

    __slots__ = ("_ages", "_place")

    def __init__(self, place: Place) -> None:
        """`place` knows which of them have been begun."""
        self._place = place
        self._ages: deque[tuple[float, int]] | None = None
        """When which stream was the newest of all."""

    def among(self, subscription: DurableSubscription) -> Mapping[StreamRef, int]:
        """Return those that it is about and that have not been begun, by their numbers."""
        new = {
            stream: key.stream_id
            for stream, key in subscription.streams.items()
            if self._place.is_new(key.stream_id)
        }
        self._note_age(subscription.newest)
        return new

    def _note_age(self, newest: int | None) -> None:
        """Let streams grow old that were made a while ago: so what is noted is bounded."""
        if newest is None:
            return
        now = asyncio.get_running_loop().time()
        ages = self._ages = deque() if self._ages is None else self._ages
        ages.append((now, newest))
        while ages and ages[0][0] <= now - NEW_SECONDS:
            self._place.grow_old(ages.popleft()[1])
