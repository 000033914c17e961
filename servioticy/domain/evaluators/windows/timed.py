"""Windows of time: tumbling, hopping and sliding ones, by panes."""

from __future__ import annotations

from itertools import chain, takewhile

from servioticy.domain.evaluators.operators import Ends
from servioticy.domain.evaluators.windows.contents import Contents, Taken
from servioticy.domain.evaluators.windows.cutting import (
    MAX_DROPPED,
    Closed,
    Found,
    check_room,
    come_out,
    first_of,
)
from servioticy.domain.evaluators.windows.head import Head, Pane
from servioticy.domain.evaluators.windows.watermark import Watermark
from servioticy.domain.verdicts import ERROR
from servioticy.domain.windows.grid import grid_of
from servioticy.domain.windows.model import Window

MAX_MERGED = 1000
"""Panes of one window."""


class Timed:
    """Cuts by a grid of time."""

    def __init__(self, window: Window, head: Head, contents: Contents) -> None:
        self._grid = grid_of(window, head.per_second)
        self._is_sliding = window.kind == "sliding"
        self._head = head
        self._over = self._out = 0
        """So many panes are not needed, and of so many all windows have come out, as far as is
        known."""
        self._contents = contents

    def take(self, taken: Taken, *, is_newest: bool) -> str:  # noqa: ARG002
        """Take an update into its pane; it is too late where all windows of that are closed."""
        head = self._head
        span = self._grid.pane_of(taken.timestamp)
        if not self._grid.ends(span, head.closed, self._grid.last_end(span)):
            return f"all windows with updates of {taken.timestamp} have ended"
        pane = head.pane(span.begin)
        if pane is None:
            check_room(head, taken.timestamp, "panes of windows")
            pane = Pane(span.begin, taken.timestamp, taken.timestamp)
            head.panes.insert(head.place(span.begin), pane)
        pane.oldest = min(pane.oldest, taken.timestamp)
        pane.newest = max(pane.newest, taken.timestamp)
        self._contents.add(span.begin, taken)
        return ""

    def closed(self, watermark: Watermark, most: int) -> Found:
        """What has ended."""
        head, due = self._head, None
        ended: list[tuple[int, int, list[int]]] = []
        reached: int | None = None
        while (end := self._next_end()) is not None:
            if len(ended) == most:
                due = head.now
                break
            if reached is None or reached < end:
                reached = watermark.reaches(end)
            if reached is None:
                due = watermark.look_again(end)
                break
            if self._comes_out(end):
                begin = self._grid.begin_of(end)
                panes = [each.begin for each in head.panes[head.place(begin) : head.place(end)]]
                ended.append((begin, end, panes))
            head.closed = end
        few = first_of(self._contents.sizes([panes for *_, panes in ended]))
        some = ended[:few]
        self._contents.know(dict.fromkeys(chain.from_iterable([panes for *_, panes in some])))
        found, problem, done = come_out(some, self._read)
        if done < len(ended):
            head.closed, due = ended[done - 1][1], head.now
        over = [
            each.begin
            for each in takewhile(lambda each: self._last_end(each) <= head.closed, head.panes)
        ]
        head.panes = head.panes[self._contents.drop(over[:MAX_DROPPED], MAX_DROPPED) :]
        if head.panes and self._last_end(head.panes[0]) <= head.closed:
            due = head.now
        return Found(found, due, problem)

    def _read(self, ended: tuple[int, int, list[int]]) -> Closed:
        begin, end, panes = ended
        if len(panes) > MAX_MERGED:
            reason = f"the window that ends at {end} has more than {MAX_MERGED} timestamps"
            raise Ends(ERROR, reason)
        return Closed(begin, end, end - 1, self._contents.read(panes))

    def _next_end(self) -> int | None:
        """The first end that is not closed: of a window that comes out, or of what a pane is for.

        It is one of the first panes that has it, as panes are in order and so are their ends.
        """
        after, panes = self._head.closed, self._head.panes
        while self._over < len(panes) and self._last_end(panes[self._over]) <= after:
            self._over += 1
        if self._over == len(panes):
            return None
        while self._out < len(panes):
            span = self._grid.pane_of(panes[self._out].newest)
            ends = self._grid.ends(span, after, self._grid.last_end(span))
            if ends:
                return min(self._last_end(panes[self._over]), ends[0])
            self._out += 1
        return self._last_end(panes[self._over])

    def _comes_out(self, end: int) -> bool:
        """Whether it is the end of a window, and not only of what panes are needed for."""
        return not self._is_sliding or self._head.pane(end - 1) is not None

    def _last_end(self, pane: Pane) -> int:
        return self._grid.last_end(self._grid.pane_of(pane.newest))
