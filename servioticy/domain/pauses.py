"""Long work with pauses: who has begun it may do something else before going on."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

PAUSE = 50
"""After so many streams there is a pause: a few of them may read thousands of others."""

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
