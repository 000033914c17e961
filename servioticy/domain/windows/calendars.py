"""Windows of a calendar: days and months of a timezone, as its clocks go."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Protocol

from servioticy.domain.windows.spans import Span
from servioticy.domain.windows.timezones import timezone as zone_of
from servioticy.domain.windows.units import SECONDS_OF_A_DAY, WEEK_BEGINS, exactly

_START = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH = _START.toordinal()
_REPEATS = 146_097
"""Days after which weekdays and leap years repeat themselves, and the rules of timezones with
them: 400 years."""
_RULES = date(2400, 1, 1).toordinal() - _EPOCH
"""Day from which there are rules only, and none that hold for one year."""
MAX_REMEMBERED = 64
"""Panes of a grid."""


class Steps(Protocol):
    """Days at which windows begin, numbered."""

    def day(self, number: int) -> int:
        """Return the day, counted from 1 January 1970."""

    def number(self, day: int) -> int:
        """Return the number of the last one that is not after the day."""


class Days:
    """Each so many days, beginning with a Monday."""

    def __init__(self, amount: int) -> None:
        self._amount = amount

    def day(self, number: int) -> int:
        """Return the day, counted from 1 January 1970."""
        return WEEK_BEGINS + number * self._amount

    def number(self, day: int) -> int:
        """Return the number of the last one that is not after the day."""
        return (day - WEEK_BEGINS) // self._amount


class Months:
    """The first of each so many months, beginning with January 1970: quarters, years."""

    def __init__(self, amount: int) -> None:
        self._amount = amount

    def day(self, number: int) -> int:
        """Return the day, counted from 1 January 1970."""
        years, month = divmod(number * self._amount, 12)
        cycles, years = divmod(years, 400)
        return date(1970 + years, month + 1, 1).toordinal() - _EPOCH + cycles * _REPEATS

    def number(self, day: int) -> int:
        """Return the number of the last one that is not after the day."""
        cycles, day = divmod(day, _REPEATS)
        found = date.fromordinal(_EPOCH + day)
        return ((cycles * 400 + found.year - 1970) * 12 + found.month - 1) // self._amount


class CalendarGrid:
    """Tumbling windows that begin on some days, by a timezone's clocks.

    Where a clock is never at that time of a day, the window begins when it has passed it; where
    it is so twice, at the first time.
    """

    def __init__(self, steps: Steps, timezone: str | None, offset: int, per_second: int) -> None:
        """`offset`: milliseconds of the clock after midnight."""
        self._steps = steps
        self._zone: tzinfo = UTC if timezone is None else zone_of(timezone)
        self._per_second = per_second
        self._clock, rest = divmod(offset, 1000)
        self._rest = exactly(rest, per_second, "an offset")
        self._known: tuple[list[int], list[Span]] = ([], [])

    def pane_of(self, timestamp: int) -> Span:
        """Return the window in which an update of this timestamp is."""
        begins, spans = self._known
        place = bisect_right(begins, timestamp) - 1
        if place >= 0 and timestamp < spans[place].end:
            return spans[place]
        found = self._find(timestamp)
        others = spans if len(spans) < MAX_REMEMBERED else []
        spans = sorted([*others, found])
        # In one: others may look at it meanwhile.
        self._known = ([each.begin for each in spans], spans)
        return found

    def ends(self, pane: Span, after: int, until: int) -> list[int]:
        """Return the pane's end, if after < end <= until."""
        return [pane.end] if after < pane.end <= until else []

    def begin_of(self, end: int) -> int:
        """Return where the window with this end begins."""
        return self.pane_of(end - 1).begin

    def last_end(self, pane: Span) -> int:
        """Return the pane's end."""
        return pane.end

    def _find(self, timestamp: int) -> Span:
        # The clock's day is this one of UTC or one next to it.
        day = timestamp // (SECONDS_OF_A_DAY * self._per_second)
        number = self._steps.number(day)
        while timestamp < self._cut(number):
            number -= 1
        begin, end = self._cut(number), self._cut(number + 1)
        while timestamp >= end:
            # Where a timezone has left out a day, that has no time at all.
            number += 1
            begin, end = end, self._cut(number + 1)
        return Span(begin, end)

    def _cut(self, number: int) -> int:
        """Return the time at which the window of this number begins."""
        day = self._steps.day(number)
        cycles = max(0, (day - _RULES) // _REPEATS)
        midnight = datetime.fromordinal(_EPOCH + day - cycles * _REPEATS)
        clock = (midnight + timedelta(seconds=self._clock)).replace(tzinfo=self._zone)
        seconds = (clock - _START) // timedelta(seconds=1)
        return (seconds + cycles * _REPEATS * SECONDS_OF_A_DAY) * self._per_second + self._rest
