"""Long work with pauses: who has begun it may do something else before going on."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

PAUSE = 50
"""After so many streams there is a pause: a few of them may read thousands of others."""

PACES = 1000
"""Channels, inputs, references: half a millisecond to a whole one until there is a pause."""

Answer = TypeVar("Answer")

Paused: TypeAlias = Generator[None, None, Answer]
"""Goes on until the next pause each time it is asked, and returns its answer at the end."""


def finished(work: Paused[Answer]) -> Answer:
    """What comes of the work, taken to its end at once."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            answer: Answer = end.value
            return answer


def short(work: Paused[Answer], most: int) -> Answer | None:
    """What comes of the work if it has no more pauses than that; else it is given up."""
    for _ in range(most + 1):
        try:
            next(work)
        except StopIteration as end:
            answer: Answer = end.value
            return answer
    work.close()
    return None


class Paces:
    """Counts small things of which each takes about as long, whatever holds them."""

    def __init__(self, most: int = PACES) -> None:
        """`most`: that lie between two pauses, but for one that is larger by itself."""
        self._most = self._since = most

    def pauses(self, count: int) -> bool:
        """Tell whether there is to be a pause before so many more: also before the first ones, as
        who knows what was done before these."""
        self._since += count
        if self._since <= self._most:
            return False
        self._since = count
        return True
