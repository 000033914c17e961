"""An answer that is made while it is sent goes on only as long as who asked for it may."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from servioticy.errors import ServioticyError, Stranger
from servioticy.refusals import Refused

ASK_AGAIN_SECONDS = 0.5
"""So long nobody asks again: one small question beside the many pages of that time."""


class NoLongerAllowed(ServioticyError):
    """Who asked may not have the rest of the answer."""


class WhileAllowed:
    """The pieces of an answer, until `allow` refuses; then it breaks off.

    The thread that makes the next piece asks, and only then: who takes nothing costs nothing.
    """

    def __init__(
        self,
        pieces: Iterable[Any],
        allow: Callable[[], object],
        asked: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`allow` raises Refused or Stranger; when it was `asked`, by the clock, it did not."""
        self._pieces = pieces
        self._rest = iter(pieces)
        self._allow = allow
        self._clock = clock
        self._asked = asked

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        """Return the next piece. Raises NoLongerAllowed."""
        now = self._clock()
        if now - self._asked >= ASK_AGAIN_SECONDS:
            try:
                self._allow()
            except (Refused, Stranger) as error:
                raise NoLongerAllowed(str(error)) from error
            self._asked = now
        return next(self._rest)

    def close(self) -> None:
        """Let go of what the pieces are made of."""
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()
