"""Where the topic begins, asked once for all who come in a moment.

The broker is asked over one connection, one question after the other, and that reads the topic
again for everybody, too. So however many clients go on from where they were, there is one
question a partition and moment, and nobody has a queue before it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

from servioticy.ports.emitted import EmittedPages

KEEP_SECONDS = 1.0
"""So old an answer may be. The topic loses its beginning a segment at a time, after weeks."""


class _Asked(NamedTuple):
    at: float
    answer: asyncio.Task[int]


class Beginnings:
    """All methods belong to the event loop's thread."""

    def __init__(self, pages: EmittedPages, clock: Callable[[], float] = time.monotonic) -> None:
        self._pages = pages
        self._clock = clock
        self._asked: dict[int, _Asked] = {}

    async def of(self, partition: int) -> int:
        """Return the first offset that a partition of the topic has. Raises Unavailable."""
        found = self._asked.get(partition)
        if found is None or self._is_over(found):
            asking = asyncio.create_task(asyncio.to_thread(self._pages.begins_at, partition))
            asking.add_done_callback(_has_failed)  # counts as seen, though nobody waits any more
            found = self._asked[partition] = _Asked(self._clock(), asking)
        # Others wait for the same answer: one that goes takes it from nobody.
        return await asyncio.shield(found.answer)

    def _is_over(self, asked: _Asked) -> bool:
        """Return whether to ask again: never beside a question that has no answer yet.

        While the broker is slow each moment's would take a thread more.
        """
        is_old = asked.at + KEEP_SECONDS <= self._clock()
        return asked.answer.done() and (is_old or _has_failed(asked.answer))


def _has_failed(answer: asyncio.Task[int]) -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)
