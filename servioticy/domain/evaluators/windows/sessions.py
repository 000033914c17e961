"""Sessions: updates that follow each other within a gap."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from servioticy.domain.evaluators.windows.again import Again
from servioticy.domain.evaluators.windows.contents import Contents
from servioticy.domain.evaluators.windows.cutting import (
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
from servioticy.domain.evaluators.windows.head import NEVER, Head, Pane
from servioticy.domain.evaluators.windows.inputs import Taken
from servioticy.domain.evaluators.windows.watermark import Watermark
from servioticy.domain.windows.model import Window
from servioticy.domain.windows.units import exactly


class _Coming(NamedTuple):
    """A session that is to come out."""

    pane: Pane
    is_revision: bool = False
    is_early: bool = False


class Sessions:
    """Each session is a pane. One that has become as long as it may takes nothing more.

    One that is out is kept while it takes in what is late: that changes its result, or takes it
    back, where the session ends later now or has become a part of another. What ends no later than
    what is out is a revision, as it has no place among results any more that others are woken by.
    """

    def __init__(
        self, window: Window, head: Head, contents: Contents, _folds: Folds, most: int
    ) -> None:
        self._most_panes = most
        self._gap, self._most = _lengths(window, head.per_second)
        self._window = window
        self._lateness = -(-window.lateness * head.per_second // 1000)
        self._times = EarlyTimes(window, head)
        self._head = head
        if not self._lateness:
            head.over = max(head.over, head.closed)
        self._contents = contents

    def take(self, taken: Taken, again: Again) -> str:
        """Take an update into the sessions that it belongs to, which are one from here on."""
        head, timestamp = self._head, taken.timestamp
        if self._takes_again(taken, again):
            return ""
        oldest = newest = timestamp
        joined: list[Pane] = []
        for each in head.panes:
            if each.oldest - self._gap < timestamp < each.newest + self._gap:
                low, high = min(oldest, each.oldest), max(newest, each.newest)
                if high - low < self._most:
                    oldest, newest = low, high
                    joined.append(each)
        if not joined:
            if timestamp + self._gap <= head.over:
                return f"a session of {timestamp} would have ended"
            check_room(head, self._most_panes, timestamp, "sessions")
            pane = Pane(taken.order, oldest, newest)
            head.panes.insert(head.place(taken.order), pane)
            self._add(pane, taken)
            return ""
        first = joined[0]
        if len(joined) > 1:
            self._become_one(joined)
        first.oldest, first.newest = oldest, newest
        if first.out is not None and first.out != self._end(first):
            first.out = None
            head.parts += [first.begin] if first.begin in head.told else []
        self._add(first, taken)
        return ""

    def _takes_again(self, taken: Taken, again: Again) -> bool:
        """Whether the update takes the place of one that a session has, which is as long then."""
        timestamp = taken.timestamp
        inside = [each for each in self._head.panes if each.oldest <= timestamp <= each.newest]
        if not inside:
            again.instead(None, timestamp, timestamp)
            return False
        again.refuse_seen(inside)
        pane = inside[0]
        meeting = [
            each
            for each in self._head.panes
            if each.oldest <= pane.newest and pane.oldest <= each.newest
        ]
        is_alone = len(meeting) == 1
        instead = again.instead(pane, pane.oldest, pane.newest, is_alone=is_alone)
        if instead is None:
            return False
        self._note_taken(pane)
        make_again(self._contents, pane, instead, self._window)
        return True

    def _become_one(self, joined: Sequence[Pane]) -> None:
        """These are the first of them from here on."""
        head, first = self._head, joined[0]
        self._contents.merge([each.begin for each in joined], first.begin)
        head.give_up([each.begin for each in joined[1:]])
        head.panes = [each for each in head.panes if each is first or each not in joined]
        head.parts += [each.begin for each in joined[1:] if each.begin in head.told]
        if any(each.begin in head.held for each in joined):
            head.held = [*sorted({*head.held, first.begin})]
        first.told = sum([each.told for each in joined])
        for each in joined[1:]:
            head.early.pop(each.begin, None)
            head.changed.pop(each.begin, None)

    def _add(self, pane: Pane, taken: Taken) -> None:
        self._note_taken(pane)
        self._contents.add(pane.begin, taken)

    def _note_taken(self, pane: Pane) -> None:
        """Note that something is in a session that is in no result of it yet."""
        head = self._head
        if self._lateness and self._end(pane) <= head.closed:
            head.changed[pane.begin] = NEVER
            head.early.pop(pane.begin, None)
        else:
            head.changed.pop(pane.begin, None)
            if self._times.are:
                head.early[pane.begin] = NEVER

    def closed(self, watermark: Watermark, most: int) -> Found:
        """What has changed, what has ended, and what comes out before it does."""
        head = self._head
        changed = self._in_order([each for each in head.panes if each.begin in head.changed])
        changed = changed[:most]
        ended, reached, due = self._ended(watermark, most - len(changed))
        first_early = len(changed) + len(ended)
        early = self._early(ended, most - first_early) if self._times.is_now() else []
        coming = [
            *[_Coming(each, is_revision=True) for each in changed],
            *[_Coming(each) for each in ended],
            *[_Coming(each, is_revision=True, is_early=True) for each in early],
        ]
        few = first_of(self._contents.sizes([[each.pane.begin] for each in coming]))
        self._contents.know([each.pane.begin for each in coming[:few]])
        found, problem, done = come_out(coming[:few], self._read)
        if done < first_early:
            due = head.now
        for each in coming[:done]:
            head.early.pop(each.pane.begin, None)
            head.changed.pop(each.pane.begin, None)
            if not each.is_early:
                each.pane.out = self._end(each.pane)
        if early and not head.early:
            self._times.note()
        out = [self._end(each.pane) for each in coming[len(changed) : done] if not each.is_early]
        head.closed = max([head.closed, *out])
        due = earlier(due, self._give_up(watermark, reached))
        if head.changed:
            due = head.now
        return Found(found, earlier(due, self._times.due if head.early else None), problem)

    def _in_order(self, panes: Iterable[Pane]) -> list[Pane]:
        return sorted(panes, key=lambda each: (self._end(each), each.begin))

    def _ended(self, watermark: Watermark, most: int) -> tuple[list[Pane], int | None, int | None]:
        """What has ended; the watermark, where that was worked out; and when to look again."""
        head = self._head
        ended: list[Pane] = []
        mark: int | None = None
        for pane in self._in_order(head.panes):
            if pane.out is not None or pane.begin in head.changed:
                continue
            if len(ended) >= most:
                return ended, mark, head.now
            end = self._end(pane)
            reached = watermark.reaches(end)
            if reached is None:
                return ended, mark, watermark.look_again(end)
            mark = reached
            ended.append(pane)
        return ended, mark, None

    def _give_up(self, watermark: Watermark, reached: int | None) -> int | None:
        """Give up sessions that are over; when to look again, if that is known."""
        head = self._head
        out = [each.out for each in head.panes if each.out is not None]
        if not self._lateness:
            head.over = head.closed
        elif out and not head.changed:
            if reached is None:
                reached = watermark.reaches(min(out) + self._lateness)
            if reached is not None:
                head.over = max(head.over, min(reached - self._lateness, head.closed))
        over = [each for each in head.panes if each.out is not None and each.out <= head.over]
        if over:
            head.give_up([each.begin for each in over])
            head.panes = [each for each in head.panes if each not in over]
        left = [each for each in out if each > head.over]
        return watermark.look_again(min(left) + self._lateness) if left else None

    def _early(self, ended: Collection[Pane], most: int) -> list[Pane]:
        """Sessions that have not ended, with updates that were in no result yet, by their ends."""
        early = self._head.early
        open_ = [each for each in self._head.panes if each.begin in early]
        some = [each for each in open_ if each not in ended]
        some = sorted(some, key=lambda each: (self._end(each), each.begin))[: max(0, most)]
        sizes = self._contents.sizes([[each.begin] for each in some])
        for each, size in zip(some, sizes, strict=True):
            if size > MAX_EARLY:
                del early[each.begin]  # it comes out at its end only
        small = [each for each in some if each.begin in early]
        return small[: first_of([size for size in sizes if size <= MAX_EARLY], MAX_EARLY)]

    def _read(self, coming: _Coming) -> Closed:
        pane, is_revision, is_early = coming
        end = self._end(pane)
        inputs = self._contents.read([pane.begin])
        return Closed(
            pane.oldest,
            end,
            end - 1,
            inputs,
            is_revision,
            is_early,
            number=pane.begin,
            before=pane.told,
        )

    def _end(self, pane: Pane) -> int:
        return end_of(pane, self._window, self._head.per_second)


def end_of(session: Pane, window: Window, per_second: int) -> int:
    """Where a session ends, as far as is known of it."""
    gap, most = _lengths(window, per_second)
    return min(session.newest + gap, session.oldest + most)


def _lengths(window: Window, per_second: int) -> tuple[int, int]:
    gap = exactly(window.gap or 0, per_second, "a gap")
    return gap, exactly(window.max or 0, per_second, "a longest session")
