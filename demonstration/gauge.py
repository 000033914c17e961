"""A value and its band in a row of a terminal: where it is now, and where it has been."""

from __future__ import annotations

import math
from collections import deque

from demonstration.sparkline import block

INSIDE, OUTSIDE = 9, 2
"""Columns within the brackets, and beyond each of them."""

GAUGE = INSIDE + 2 + 2 * OUTSIDE
BELOW, ABOVE = "▼", "▲"


def place(value: float, low: float, high: float) -> float:
    """Return where a value is: 0 at the lower border, 1 at the upper, beyond them outside.

    A band that has no width has one value inside it, and all others are far away.
    """
    if low <= value <= high:
        return (value - low) / (high - low) if low < high else 0.5
    if low == high:
        return math.copysign(math.inf, value - low)
    # A quotient may be rounded to the border, which is inside.
    beyond = (value - low) / (high - low)
    return min(beyond, -math.ulp(0)) if value < low else max(beyond, math.nextafter(1, 2))


def gauge(at: float) -> str:
    """Return the band in brackets with a dot where the value is, or a mark outside of them."""
    cells = list(" " * OUTSIDE + "[" + "·" * INSIDE + "]" + " " * OUTSIDE)
    if 0 <= at <= 1:
        cells[OUTSIDE + 1 + round(at * (INSIDE - 1))] = "●"
    elif at < 0:
        cells[OUTSIDE - _columns(-at)] = "!"
    else:
        cells[OUTSIDE + 1 + INSIDE + _columns(at - 1)] = "!"
    return "".join(cells)


def _columns(beyond: float) -> int:
    """At least one, at most all that there are."""
    return max(1, math.ceil(min(OUTSIDE, beyond * (INSIDE - 1))))


class Band:
    """A series as a row: the gauge of its last value, and where it was before, oldest first."""

    def __init__(self, width: int) -> None:
        self._places: deque[float] = deque(maxlen=1 + max(0, width - GAUGE - 1))

    def add(self, value: float, low: float, high: float) -> None:
        """Append a value with its band."""
        self._places.append(place(value, low, high))

    def drawn(self) -> str:
        """Return the row; without a value it is empty."""
        if not self._places:
            return ""
        *before, last = self._places
        return f"{gauge(last)} {''.join(map(_mark, before))}"


def _mark(at: float) -> str:
    return BELOW if at < 0 else ABOVE if at > 1 else block(at)
