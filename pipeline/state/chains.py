"""Questions of one stream that are open, each asked behind the one before (decision 0080).

A program is asked on while its answers are on their way through the log. What is asked behind a
question goes on with the state that this one leaves; so its answer is taken in right behind that
one's, or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.state.answering import Asked
from servioticy.domain.evaluators.programs import Head
from servioticy.ports.programs import Program

MAX_AHEAD = 8
MAX_AHEAD_BYTES = 2 * 1024 * 1024
"""Questions of one stream that are open, and bytes of their events; where these are as many no
further one is asked."""


@dataclass(slots=True)
class Open:
    """A question, until its answer has come out of the log."""

    asked: Asked
    name: str
    """Of the composite's code, for accounts."""
    size: int
    """Bytes of its events."""
    answered_at: float | None = None
    left: bytes | None = None
    """What the stream keeps behind it, once it is answered."""


class Place(NamedTuple):
    """Where the next question of a stream begins."""

    first: int
    """The number of its first event."""
    states: int
    """As Head counts them."""
    behind: Open | None
    """The question that it is asked behind; None: all that was asked is taken in."""

    @property
    def after(self) -> bytes:
        """The id of that question."""
        return b"" if self.behind is None else self.behind.asked.id

    @property
    def is_busy(self) -> bool:
        """Whether the program has still to answer that question."""
        return self.behind is not None and self.behind.answered_at is None


def place_behind(chain: Sequence[Open], queue: Head) -> Place | None:
    """Return the place behind these; None where nothing may be asked behind them now."""
    if not chain:
        return Place(queue.first, queue.states, None)
    if len(chain) >= MAX_AHEAD or sum(each.size for each in chain) >= MAX_AHEAD_BYTES:
        return None
    last = chain[-1]
    return Place(last.asked.first + len(last.asked.timestamps), last.asked.states + 1, last)


def still_open(chain: Sequence[Open], queue: Head, program: Program) -> list[Open]:
    """Return those of a stream's questions whose answers may still be taken in, as it is stored
    now: all behind the first one that is, or none."""
    if chain[0].asked.begun != queue.begun or chain[0].asked.program != program:
        return []
    left = [each for each in chain if each.asked.states >= queue.states]
    if not left:
        return []
    first = left[0].asked
    is_next = first.states == queue.states
    begins = 0 <= queue.first - first.first < len(first.timestamps)
    goes_on = not first.after or first.after.decode() == queue.answered
    return left if is_next and begins and goes_on else []
