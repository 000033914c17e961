"""Whose step is next: of all work in another process one takes a step at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from api.stepping.step import Step
from servioticy.errors import Unavailable
from servioticy.turns import Turns


def in_turns(
    steps: Iterator[Step], turns: Turns, tenant: int, listens: Callable[[], bool]
) -> Iterator[Step]:
    """Yield the same, tenants by turns.

    More at once would not be quicker, as one thread of a process computes at a time, here or
    elsewhere. Who has gone meanwhile takes no more of them.
    """
    while True:
        with turns.turn(tenant):
            if not listens():
                raise Unavailable("nobody waits for what is found any more")
            step = next(steps, None)
        if step is None:
            return
        yield step
