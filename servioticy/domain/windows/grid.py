"""Where windows of time begin and end: arithmetic on timestamps, in whole numbers only.

Timestamps are in the tenant's own unit, of which a second has `per_second`. Updates are kept by
*panes*, the largest pieces of time that no window cuts, so an update changes one pane however
many windows it is in (Li et al., "No pane, no gain", SIGMOD Record 34(1), 2005).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from servioticy.domain.windows.calendars import CalendarGrid, Days, Months
from servioticy.domain.windows.fixed import HoppingGrid, SlidingGrid
from servioticy.domain.windows.model import Length, Window
from servioticy.domain.windows.spans import Span
from servioticy.domain.windows.units import SECONDS_OF_A_DAY, WEEK_BEGINS, exactly

MAX_REMEMBERED = 1024
"""Grids; each is small."""


class Grid(Protocol):
    """The panes and windows of time."""

    def pane_of(self, timestamp: int) -> Span:
        """Return the pane into which an update of this timestamp goes."""

    def ends(self, pane: Span, after: int, until: int) -> list[int]:
        """Return where the windows end that come out because of this pane, ascending.

        Only ends with after < end <= until.
        """

    def begin_of(self, end: int) -> int:
        """Return where the window with this end begins."""

    def last_end(self, pane: Span) -> int:
        """Return the end of the last window for which the pane is needed."""


@lru_cache(MAX_REMEMBERED)
def grid_of(window: Window, per_second: int) -> Grid:
    """Return the grid of a tumbling, hopping or sliding window.

    Raises ValueError for other windows, and where durations are no whole numbers of the unit.
    """
    size, every = window.size, window.every
    if size is None or window.kind not in ("tumbling", "hopping", "sliding"):
        raise ValueError(f"a {window.kind} window has no grid of time")
    if window.kind == "tumbling" and _of_a_calendar(size, window.timezone):
        steps = Months(size.amount) if size.unit == "months" else Days(size.amount)
        return CalendarGrid(steps, window.timezone, window.offset, per_second)
    width = _fixed(size, per_second, "a size")
    if window.kind == "sliding":
        return SlidingGrid(width)
    offset = exactly(window.offset, per_second, "an offset")
    if size.unit == "days":
        offset += WEEK_BEGINS * SECONDS_OF_A_DAY * per_second
    return HoppingGrid(width, width if every is None else _fixed(every, per_second), offset)


def _of_a_calendar(size: Length, timezone: str | None) -> bool:
    """Whether such windows differ in length. Days of UTC do not."""
    return size.unit == "months" or (size.unit == "days" and timezone is not None)


def _fixed(length: Length, per_second: int, what: str = "every") -> int:
    if length.unit == "months":
        raise ValueError("only tumbling windows have sizes in months")
    if length.unit == "days":
        return length.amount * SECONDS_OF_A_DAY * per_second
    return exactly(length.amount, per_second, what)
