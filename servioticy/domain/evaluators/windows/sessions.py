"""Sessions: updates that follow each other within a gap."""

from __future__ import annotations

from collections.abc import Collection

from servioticy.domain.evaluators.windows.contents import Contents, Taken
from servioticy.domain.evaluators.windows.cutting import (
    MAX_EARLY,
    Closed,
    EarlyTimes,
    Found,
    check_room,
    come_out,
    earlier,
    first_of,
)
from servioticy.domain.evaluators.windows.folding import Folds
from servioticy.domain.evaluators.windows.head import NEVER, Head, Pane
from servioticy.domain.evaluators.windows.watermark import Watermark
from servioticy.domain.windows.model import Window
from servioticy.domain.windows.units import exactly


class Sessions:
    """Each session is a pane. One that has become as long as it may takes nothing more."""

    def __init__(
        self, window: Window, head: Head, contents: Contents, _folds: Folds, most: int
    ) -> None:
        self._most_panes = most
        self._gap, self._most = _lengths(window, head.per_second)
        self._window = window
        self._times = EarlyTimes(window, head)
        self._head = head
        self._contents = contents

    def take(self, taken: Taken, *, is_newest: bool) -> str:  # noqa: ARG002
        """Take an update into the sessions that it belongs to, which are one from here on."""
        head, timestamp = self._head, taken.timestamp
        oldest = newest = timestamp
        joined: list[Pane] = []
        for each in head.panes:
            if each.oldest - self._gap < timestamp < each.newest + self._gap:
                low, high = min(oldest, each.oldest), max(newest, each.newest)
                if high - low < self._most:
                    oldest, newest = low, high
                    joined.append(each)
        if not joined:
            if timestamp + self._gap <= head.closed:
                return f"a session of {timestamp} would have ended"
            check_room(head, self._most_panes, timestamp, "sessions")
            head.panes.insert(head.place(taken.order), Pane(taken.order, oldest, newest))
            self._add(taken.order, taken)
            return ""
        first = joined[0]
        if len(joined) > 1:
            self._contents.merge([each.begin for each in joined], first.begin)
            head.give_up([each.begin for each in joined[1:]])
            head.panes = [each for each in head.panes if each is first or each not in joined]
            for each in joined[1:]:
                head.early.pop(each.begin, None)
            head.parts += [each.begin for each in joined[1:] if each.begin in head.told]
            if any(each.begin in head.held for each in joined):
                head.held = [*sorted({*head.held, first.begin})]
            first.told = sum([each.told for each in joined])
        first.oldest, first.newest = oldest, newest
        self._add(first.begin, taken)
        return ""

    def _add(self, begin: int, taken: Taken) -> None:
        if self._times.are:
            self._head.early[begin] = NEVER
        self._contents.add(begin, taken)

    def closed(self, watermark: Watermark, most: int) -> Found:
        """What has ended."""
        head, due = self._head, None
        ended: list[Pane] = []
        for pane in sorted(head.panes, key=lambda each: (self._end(each), each.begin)):
            end = self._end(pane)
            if len(ended) == most:
                due = head.now
                break
            if watermark.reaches(end) is None:
                due = watermark.look_again(end)
                break
            ended.append(pane)
        early = self._early(ended, most - len(ended)) if self._times.is_now() else []
        coming = [*[(each, False) for each in ended], *[(each, True) for each in early]]
        few = first_of(self._contents.sizes([[each.begin] for each, _ in coming]))
        self._contents.know([each.begin for each, _ in coming[:few]])
        found, problem, done = come_out(coming[:few], self._read)
        if done < len(ended):
            due = head.now
        gone = [each.begin for each in ended[:done]]
        for each, _ in coming[:done]:
            head.early.pop(each.begin, None)
        if early and not head.early:
            self._times.note()
        head.closed = max([head.closed, *map(self._end, ended[:done])])
        head.give_up(gone)
        head.panes = [each for each in head.panes if each.begin not in gone]
        return Found(found, earlier(due, self._times.due if head.early else None), problem)

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

    def _read(self, coming: tuple[Pane, bool]) -> Closed:
        pane, is_early = coming
        end = self._end(pane)
        inputs = self._contents.read([pane.begin])
        return Closed(
            pane.oldest,
            end,
            end - 1,
            inputs,
            is_early,
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
