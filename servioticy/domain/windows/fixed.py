"""Windows that are all of one length."""

from __future__ import annotations

from math import gcd

from servioticy.domain.windows.spans import Span


class HoppingGrid:
    """Windows of `size` that begin at multiples of `every` from an offset on.

    Tumbling ones are those of which `every` is the size. Panes are as long as the greatest
    common divisor of both.
    """

    def __init__(self, size: int, every: int, offset: int) -> None:
        self._size = size
        self._every = every
        self._width = gcd(size, every)
        self._offset = offset
        self._first_end = offset + size

    def pane_of(self, timestamp: int) -> Span:
        """Return the pane into which an update of this timestamp goes."""
        begin = timestamp - (timestamp - self._offset) % self._width
        return Span(begin, begin + self._width)

    def ends(self, pane: Span, after: int, until: int) -> list[int]:
        """Return where all windows that contain the pane end, with after < end <= until."""
        earliest = self._at_or_after(max(pane.end, after + 1))
        latest = min(pane.begin + self._size, until)
        return list(range(earliest, latest + 1, self._every))

    def begin_of(self, end: int) -> int:
        """Return where the window with this end begins."""
        return end - self._size

    def last_end(self, pane: Span) -> int:
        """Return the end of the last window that contains the pane."""
        latest = pane.begin + self._size
        return latest - (latest - self._first_end) % self._every

    def _at_or_after(self, time: int) -> int:
        """Return the first end of a window that is not before."""
        return time + (self._first_end - time) % self._every


class SlidingGrid:
    """A window ends with each update: the one at t closes (t - size, t].

    Timestamps are whole numbers, so as a half-open span it is [t + 1 - size, t + 1).
    """

    def __init__(self, size: int) -> None:
        self._size = size

    def pane_of(self, timestamp: int) -> Span:
        """Return the timestamp alone."""
        return Span(timestamp, timestamp + 1)

    def ends(self, pane: Span, after: int, until: int) -> list[int]:
        """Return where the one window ends that comes out because of the pane."""
        return [pane.end] if after < pane.end <= until else []

    def begin_of(self, end: int) -> int:
        """Return where the window with this end begins."""
        return end - self._size

    def last_end(self, pane: Span) -> int:
        """Return the end of the last window that an update may yet close and that has the pane.

        That is the one closed at begin + size - 1.
        """
        return pane.begin + self._size
