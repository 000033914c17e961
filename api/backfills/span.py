"""The span that a backfill fills, and how far around it history is read.

What is read before it is there for windows that reach back; what is read behind it, so that those
of the span end as they did, and what is derived from them reads what there was then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from api.replaying.moments import moment
from servioticy.domain.model import Timestamp
from servioticy.domain.time_units import PER_SECOND, unit_of
from servioticy.domain.windowed import WindowsOf
from servioticy.domain.windows.model import Length, Silence, Window

DAY = 25 * 3_600_000
"""The longest of a calendar, in ms."""
MONTH = 31 * DAY
MOST_READ_AROUND = 400 * DAY


class Span(NamedTuple):
    """From `since` up to `until`, which is not in it; what is read around it."""

    since: Timestamp
    until: Timestamp
    reads_since: Timestamp
    reads_until: Timestamp
    now: int
    """By the clock, in ms since 1970."""
    passes_to: int
    """So far time goes on behind all that is read, in ms since 1970."""

    def has(self, timestamp: Timestamp) -> bool:
        """Whether it is in the span."""
        return self.since <= timestamp < self.until


def span_of(since: Timestamp, until: Timestamp, windows: Iterable[WindowsOf], now: int) -> Span:
    """Return what is to be read for these windows; `now` is in ms since 1970."""
    every = [each.window for each in windows]
    before = min(MOST_READ_AROUND, max(map(_reach, every), default=0))
    behind = min(MOST_READ_AROUND, sum(map(_wait, every)))
    end = moment(until, now)
    return Span(
        since,
        until,
        max(0, since - _counted(before, since, now)),
        until + _counted(behind, until, now),
        now,
        now if end is None else min(now, end + behind),
    )


def reaches_back(code: WindowsOf) -> bool:
    """Whether it is known how far back its windows reach: of others the first begin at `since`."""
    window = code.window
    return isinstance(window, Silence) or window.kind not in ("count", "global")


def _counted(ms: int, at: Timestamp, now: int) -> int:
    """Return so long as timestamps around this one count."""
    unit = unit_of(at, now / 1000)
    return 0 if unit is None else -(-ms * PER_SECOND[unit] // 1000)


def _reach(window: Window | Silence) -> int:
    """Return how long an update is in a window, in ms."""
    if isinstance(window, Silence):
        return window.after
    if window.kind == "session":
        return (window.max or 0) + (window.gap or 0)
    return 0 if window.size is None else _ms(window.size)


def _wait(window: Window | Silence) -> int:
    """Return how long behind its end a window may come out, in ms."""
    return 0 if isinstance(window, Silence) else window.delay + window.idle


def _ms(length: Length) -> int:
    return length.amount * {"milliseconds": 1, "days": DAY, "months": MONTH}[length.unit]
