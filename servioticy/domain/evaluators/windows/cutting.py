"""What all ways of cutting updates into windows have in common."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol, TypeVar

from servioticy.domain.evaluators.operators import Ends
from servioticy.domain.evaluators.windows.again import Again
from servioticy.domain.evaluators.windows.contents import Contents
from servioticy.domain.evaluators.windows.folding import Folds
from servioticy.domain.evaluators.windows.head import Head, Pane
from servioticy.domain.evaluators.windows.inputs import Input, Taken
from servioticy.domain.evaluators.windows.watermark import Watermark
from servioticy.domain.verdicts import ERROR
from servioticy.domain.windows.model import Window

T = TypeVar("T")

MAX_DROPPED = 500
"""Entries that one computation gives up, at least those of one pane; the rest goes later."""


MAX_AHEAD = 500
"""Panes of one composite stream that begin after the log's time."""

MAX_EARLY = 128 * 1024
"""Bytes kept of a window that comes out before its end, and of all that do so by one computation:
they are read and merged with each update."""

MAX_READ = 1024 * 1024
"""Bytes kept of the windows that come out of one computation, where they are several."""


class Closed(NamedTuple):
    """A window that has ended, with what is in it."""

    begin: int
    end: int
    timestamp: int
    """Of its result."""
    inputs: Sequence[Input | None]
    is_revision: bool = False
    """Whether it has not ended, or its result was out before."""
    is_early: bool = False
    """Whether it has not ended."""
    state: bytes | None = None
    """What a fold has made of it, as JSON; None: there is no fold."""
    number: int = 0
    """Which of those that are open it is: its end, or of sessions their first pane."""
    before: int = 0
    """How many of its updates have been told before and are not in it any more."""

    @property
    def updates(self) -> int:
        """How many have come."""
        return self.before + self.fresh

    @property
    def fresh(self) -> int:
        """How many are in it."""
        return sum([each.aggregate.count for each in self.inputs if each is not None])


class Found(NamedTuple):
    """What has ended, or comes out for another reason."""

    closed: Sequence[Closed]
    """Each with another timestamp: those that have changed, those that have ended, and those that
    have not, each by their ends."""
    due: int | None = None
    """When to look again, by the log's time in ms; None: when something is sent."""
    problem: str = ""
    """Why nothing comes of a window that has ended."""


class Cutting(Protocol):
    """Cuts the updates of one composite, at one place in the log."""

    def __init__(
        self, window: Window, head: Head, contents: Contents, folds: Folds, most: int
    ) -> None:
        """`most`: panes that may be kept at once.

        Raises ValueError where the window cannot be cut in the unit of its timestamps.
        """

    def take(self, taken: Taken, again: Again) -> str:
        """Take an update in, which may be there already.

        Returns why there is no window for it, if so. Raises Ends, and Repeated.
        """

    def closed(self, watermark: Watermark, most: int) -> Found:
        """What has ended, so many windows at most; what no open window has is given up."""


class EarlyTimes:
    """When results of windows that have not ended come out."""

    def __init__(self, window: Window, head: Head) -> None:
        self._every = window.early
        self._head = head

    @property
    def are(self) -> bool:
        """Whether there are any at all."""
        return self._every is not None

    def is_now(self) -> bool:
        """Whether they come out by this computation."""
        due = self.due
        return due is not None and due <= self._head.now

    def note(self) -> None:
        """All of them have."""
        self._head.told_early = self._head.now

    @property
    def due(self) -> int | None:
        """When they do, by the log's time in ms."""
        if self._every is None:
            return None
        before = self._head.told_early
        return (self._head.since if before is None else before) + self._every


def make_again(contents: Contents, pane: Pane, updates: Sequence[Taken], window: Window) -> None:
    """Let these be all that a pane has of their input, one of which came again."""
    before = contents.make_again(pane.begin, updates[-1].argument, updates)
    if window.revises and window.revisions != "discard":  # its next number is to be greater
        pane.told += max(0, before + 1 - len(updates))


def earlier(one: int | None, other: int | None) -> int | None:
    """The earlier of two times of which there need be none."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def check_room(head: Head, most: int, timestamp: int, what: str) -> None:
    """Raise Ends where so many are open: a clock that is wrong takes not all of the room."""
    if len(head.panes) >= most:
        raise Ends(ERROR, f"more than {most} {what} are open")
    now = head.now * head.per_second // 1000
    if timestamp > now and sum([each.oldest > now for each in head.panes]) >= MAX_AHEAD:
        raise Ends(ERROR, f"more than {MAX_AHEAD} {what} after the log's time are open")


def first_of(sizes: Sequence[int], most: int | None = None) -> int:
    """How many of the first windows are read in one computation, if they have so many bytes.

    `most`: of all of them together; MAX_READ without it.
    """
    together = list(accumulate(sizes))
    return max(1, bisect_right(together, MAX_READ if most is None else most))


def come_out(ended: Iterable[T], read: Callable[[T], Closed]) -> tuple[list[Closed], str, int]:
    """Read windows that have ended; why nothing comes of them; and how many of them are done.

    Those of which something comes are not together with others, or nobody would be told of these.
    """
    found: list[Closed] = []
    problem, done = "", 0
    for each in ended:
        try:
            closed = read(each)
        except Ends as end:
            if found:
                break
            problem = str(end)
        else:
            if problem:
                break
            found.append(closed)
        done += 1
    return found, problem, done
