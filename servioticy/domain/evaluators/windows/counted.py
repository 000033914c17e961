"""Windows of so many updates, in the order of the log, and one of all that ever came."""

from __future__ import annotations

from math import gcd

from servioticy.domain.evaluators.operators import Ends
from servioticy.domain.evaluators.windows.again import Again
from servioticy.domain.evaluators.windows.contents import Contents
from servioticy.domain.evaluators.windows.cutting import Closed, Found
from servioticy.domain.evaluators.windows.folding import Folds
from servioticy.domain.evaluators.windows.head import Head, Pane
from servioticy.domain.evaluators.windows.inputs import Taken
from servioticy.domain.evaluators.windows.watermark import Watermark
from servioticy.domain.windows.model import Window

FIRST, LAST = -(2**63), 2**63 - 1
"""All timestamps."""


class Counted:
    """A window is full in the tree of the update that fills it."""

    def __init__(
        self, window: Window, head: Head, contents: Contents, folds: Folds, _most: int
    ) -> None:
        self._size = window.count or 1
        self._every = window.every_count or self._size
        self._pane = gcd(self._size, self._every)
        self._head = head
        self._contents = contents
        self._folds = folds
        self._is_full = False

    def take(self, taken: Taken, again: Again) -> str:
        """Count the update, unless its stream has had a newer one: it may have been counted.

        Whether history has it tells nothing about that: rows go when they are old, by a clock
        that is not the log's.
        """
        if not again.is_newest:
            return f"its stream has sent what is as new as {taken.timestamp}"
        head = self._head
        self._add(head.counted // self._pane, taken)
        self._folds.take(self._windows())
        head.counted += 1
        self._is_full = (
            head.counted >= self._size and not (head.counted - self._size) % self._every
        )
        return ""

    def closed(self, _watermark: Watermark, _most: int) -> Found:
        """The window that is full now, if one is."""
        if not self._is_full:
            return Found([])
        head = self._head
        found, problem = [], ""
        try:
            found.append(self._window(head.panes, head.counted))
        except Ends as end:  # others come after it
            problem = str(end)
        left = self._size - self._every
        gone = [each for each in head.panes if each.begin * self._pane < head.counted - left]
        head.give_up([each.begin for each in gone])
        head.panes = head.panes[len(gone) :]
        self._folds.give_up(head.counted)
        return Found(found, problem=problem)

    def _windows(self) -> range:
        """The windows that the next update is in, by how many have come when they are full."""
        counted, size, every = self._head.counted, self._size, self._every
        before = max(0, counted + 1 - size)
        first = size + -(-before // every) * every
        return range(first, counted + size + 1, every)

    def _add(self, begin: int, taken: Taken) -> None:
        head, timestamp = self._head, taken.timestamp
        pane = head.pane(begin)
        if pane is None:
            pane = Pane(begin, timestamp, timestamp)
            head.panes.append(pane)
        pane.oldest, pane.newest = min(pane.oldest, timestamp), max(pane.newest, timestamp)
        self._contents.add(begin, taken)

    def _window(self, panes: list[Pane], number: int) -> Closed:
        newest = max(each.newest for each in panes)
        before = self._head.last_output
        timestamp = newest if before is None or newest > before else before + 1
        self._head.last_output = timestamp
        inputs = self._contents.read([each.begin for each in panes])
        begin, state = min(each.oldest for each in panes), self._folds.state(number)
        return Closed(begin, newest + 1, timestamp, inputs, state=state)


class Whole(Counted):
    """One window, of all updates, that comes out with each of them and never ends."""

    def take(self, taken: Taken, again: Again) -> str:
        """Take an update in."""
        pane = self._head.pane(0)
        instead = again.instead(pane, FIRST, LAST)
        self._is_full = True
        if instead is not None:
            self._contents.make_again(0, taken.argument, instead)
            return ""
        self._add(0, taken)
        self._folds.take([0])
        return ""

    def closed(self, _watermark: Watermark, _most: int) -> Found:
        """As it is now."""
        return Found([self._window(self._head.panes, 0)] if self._is_full else [])
