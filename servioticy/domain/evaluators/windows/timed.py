"""Windows of time: tumbling, hopping and sliding ones, by panes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import chain, groupby, islice, takewhile
from operator import add
from typing import NamedTuple

from servioticy.domain.evaluators.operators import Ends
from servioticy.domain.evaluators.windows.again import Again
from servioticy.domain.evaluators.windows.contents import Contents
from servioticy.domain.evaluators.windows.cutting import (
    MAX_DROPPED,
    MAX_EARLY,
    Closed,
    EarlyTimes,
    Found,
    check_room,
    come_out,
    earlier,
    first_of,
    make_again,
)
from servioticy.domain.evaluators.windows.folding import Folds
from servioticy.domain.evaluators.windows.head import Head, Pane
from servioticy.domain.evaluators.windows.inputs import Taken
from servioticy.domain.evaluators.windows.watermark import Watermark
from servioticy.domain.verdicts import ERROR
from servioticy.domain.windows.grid import grid_of
from servioticy.domain.windows.model import Window

MAX_MERGED = 1000
"""Panes of one window."""

FOREVER = 2**63 - 1


class _Coming(NamedTuple):
    """A window that is to come out."""

    end: int
    panes: list[int]
    is_revision: bool = False
    is_early: bool = False


class Timed:
    """Cuts by a grid of time."""

    def __init__(
        self, window: Window, head: Head, contents: Contents, folds: Folds, most: int
    ) -> None:
        self._most_panes = most
        self._window = window
        self._grid = grid_of(window, head.per_second)
        self._is_sliding = window.kind == "sliding"
        self._lateness = -(-window.lateness * head.per_second // 1000)
        self._times = EarlyTimes(window, head)
        self._head = head
        self._over = self._out = 0
        """So many panes are not needed, and of so many all windows have come out, as far as is
        known."""
        self._contents = contents
        self._folds = folds

    def take(self, taken: Taken, again: Again) -> str:
        """Take an update into its pane; it is too late where all windows of that are over."""
        head = self._head
        span = self._grid.pane_of(taken.timestamp)
        last = self._grid.last_end(span)
        if not self._grid.ends(span, head.over, last):
            return f"all windows with updates of {taken.timestamp} have ended"
        pane = head.pane(span.begin)
        instead = again.instead(pane, span.begin, span.end - 1)
        if pane is None:
            check_room(head, self._most_panes, taken.timestamp, "panes of windows")
            pane = Pane(span.begin, taken.timestamp, taken.timestamp)
            head.panes.insert(head.place(span.begin), pane)
        pane.oldest = min(pane.oldest, taken.timestamp)
        pane.newest = max(pane.newest, taken.timestamp)
        if self._grid.ends(span, head.over, min(head.closed, last)):
            head.changed[span.begin] = head.over
        if self._times.are and last > head.closed:
            head.early[span.begin] = head.closed
        if instead is not None:
            make_again(self._contents, pane, instead, self._window)
            return ""
        self._contents.add(span.begin, taken)
        self._folds.take(self._grid.ends(span, head.over, last))
        return ""

    def closed(self, watermark: Watermark, most: int) -> Found:
        """What has changed, what has ended, and what comes out before it does."""
        head, before = self._head, self._head.closed
        changed = list(self._fresh(head.changed, before, most, is_early=False))
        ended, reached, due = self._ended(watermark, most - len(changed))
        first_early = len(changed) + len(ended)
        early = self._early(most - first_early)
        small = [each for each, is_large in early if not is_large]
        coming = [*changed, *ended, *small]
        states = self._folds.sizes([each.end for each in coming])
        sizes = self._contents.sizes([each.panes for each in coming])
        few = first_of(list(map(add, sizes, states)))
        some = coming[:few]
        self._contents.know(dict.fromkeys(chain.from_iterable([each.panes for each in some])))
        found, problem, done = come_out(some, self._read)
        if done < first_early:
            out = ended[: max(0, done - len(changed))]
            head.closed, due = out[-1].end if out else before, head.now
        if changed:
            self._note_told(head.changed, changed[:done], head.over, before)
        told = small[: max(0, done - first_early)]
        if len(told) == len(small):  # those that are too large are passed over
            told = [each for each, _ in early]
        if told or head.closed != before:
            self._note_told(head.early, told, head.closed, FOREVER)
        due = earlier(due, self._give_up(watermark, reached))
        if self._folds.give_up(head.over):
            due = head.now
        return Found(found, earlier(due, self._tell_again(was_told=bool(early))), problem)

    def _early(self, most: int) -> list[tuple[_Coming, bool]]:
        """Windows that come out before their end, and whether they are too large for that."""
        if not self._times.is_now():
            return []
        found = list(self._fresh(self._head.early, FOREVER, most, is_early=True))
        sizes = self._contents.sizes([each.panes for each in found])
        few = first_of([0 if size > MAX_EARLY else size for size in sizes], MAX_EARLY)
        return [(each, size > MAX_EARLY) for each, size in zip(found, sizes, strict=True)][:few]

    def _fresh(
        self, fresh: dict[int, int], until: int, most: int, *, is_early: bool
    ) -> Iterator[_Coming]:
        """The windows, by their ends, with updates that were in no result of them yet."""
        least = self._head.closed if is_early else self._head.over
        ends = [
            self._grid.ends(span, max(after, least), min(until, self._grid.last_end(span)))
            for span, after in [(self._grid.pane_of(begin), fresh[begin]) for begin in fresh]
        ]
        several = (end for end, _ in groupby(merge(*ends)))
        for end in islice(several, max(0, most)):
            yield _Coming(end, self._panes(end), is_revision=True, is_early=is_early)

    def _ended(
        self, watermark: Watermark, most: int
    ) -> tuple[list[_Coming], int | None, int | None]:
        """What has ended; the watermark, where it was worked out; and when to look again."""
        head = self._head
        ended: list[_Coming] = []
        mark: int | None = None
        first = bisect_right(head.panes, head.closed, key=lambda each: self._last_end(each.begin))
        self._over = self._out = first
        while (end := self._next_end()) is not None:
            if len(ended) >= most:
                return ended, mark, head.now
            if mark is None or mark < end:
                reached = watermark.reaches(end)
                if reached is None:
                    return ended, mark, watermark.look_again(end)
                mark = reached
            if self._comes_out(end):
                ended.append(_Coming(end, self._panes(end)))
            head.closed = end
        return ended, mark, None

    def _give_up(self, watermark: Watermark, reached: int | None) -> int | None:
        """Give up panes of which all windows are over; when to look again, if that is known."""
        head = self._head
        if not self._lateness:
            head.over = head.closed
        elif not head.changed and head.panes:
            kept_until = self._last_end(head.panes[0].begin) + self._lateness
            if reached is None and kept_until - self._lateness <= head.closed:
                reached = watermark.reaches(kept_until)
            if reached is not None:
                head.over = max(head.over, min(reached - self._lateness, head.closed))
        over = [
            each.begin
            for each in takewhile(lambda each: self._last_end(each.begin) <= head.over, head.panes)
        ]
        head.panes = head.panes[self._contents.drop(over[:MAX_DROPPED], MAX_DROPPED) :]
        if not head.panes:
            return None
        last = self._last_end(head.panes[0].begin)
        if last <= head.over:
            return head.now
        return watermark.look_again(last + self._lateness) if last <= head.closed else None

    def _tell_again(self, *, was_told: bool) -> int | None:
        """When windows are told that have not ended, or have and were changed; None: none are."""
        head = self._head
        if head.changed:
            return head.now
        if was_told and not head.early:
            self._times.note()
        return self._times.due if head.early else None

    def _note_told(
        self, fresh: dict[int, int], told: Sequence[_Coming], least: int, most: int
    ) -> None:
        """Note that these have come out as they are now; who has none left is not fresh.

        Windows that end at `least` or earlier never come out so, nor do those that end later
        than `most`.
        """
        until = max(least, told[-1].end) if told else least
        for begin, after in list(fresh.items()):
            span = self._grid.pane_of(begin)
            fresh[begin] = max(after, until)
            if not self._grid.ends(span, fresh[begin], min(most, self._grid.last_end(span))):
                del fresh[begin]

    def _read(self, coming: _Coming) -> Closed:
        end, panes, is_revision, is_early = coming
        if len(panes) > MAX_MERGED:
            reason = f"the window that ends at {end} has more than {MAX_MERGED} timestamps"
            raise Ends(ERROR, reason)
        begin = self._grid.begin_of(end)
        inputs, state = self._contents.read(panes), self._folds.state(end)
        before = sum([pane.told for pane in map(self._head.pane, panes) if pane is not None])
        return Closed(begin, end, end - 1, inputs, is_revision, is_early, state, end, before)

    def _panes(self, end: int) -> list[int]:
        head = self._head
        some = head.panes[head.place(self._grid.begin_of(end)) : head.place(end)]
        return [each.begin for each in some]

    def _next_end(self) -> int | None:
        """The first end that is not closed: of a window that comes out, or of what a pane is for.

        It is one of the first panes that has it, as panes are in order and so are their ends.
        """
        after, panes = self._head.closed, self._head.panes
        while self._over < len(panes) and self._last_end(panes[self._over].begin) <= after:
            self._over += 1
        if self._over == len(panes):
            return None
        while self._out < len(panes):
            span = self._grid.pane_of(panes[self._out].begin)
            ends = self._grid.ends(span, after, self._grid.last_end(span))
            if ends:
                return min(self._last_end(panes[self._over].begin), ends[0])
            self._out += 1
        return self._last_end(panes[self._over].begin)

    def _comes_out(self, end: int) -> bool:
        """Whether it is the end of a window, and not only of what panes are needed for."""
        return not self._is_sliding or self._head.pane(end - 1) is not None

    def _last_end(self, begin: int) -> int:
        """The last end of the windows of the pane that begins there."""
        return self._grid.last_end(self._grid.pane_of(begin))
