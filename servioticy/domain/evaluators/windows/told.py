"""What people are told of the windows of a composite stream that are open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from servioticy.domain.evaluators.windows.head import NEVER, Head, read_head
from servioticy.domain.evaluators.windows.sessions import end_of
from servioticy.domain.windows.grid import grid_of
from servioticy.domain.windows.model import Window

MOST = 20
"""Windows that are told, those that end first."""


def told(value: bytes, window: Window) -> dict[str, Any]:
    """Return what is told of what the windows of a stream keep, all in the unit of timestamps.

    `open`: the windows that have updates, by their ends; `closed-until`: what ends there or
    earlier has come out; `held-back-by`: the stream that the others wait for, and `reached`: how
    far it has come.
    """
    head = read_head(value)
    try:
        found: dict[str, Any] = {"open": _open(head, window)}
    except ValueError:  # they are of a version whose windows fitted other timestamps
        found = {"open": []}
    found["updates"] = head.taken
    if head.closed != NEVER:
        found["closed-until"] = head.closed
    if head.holder is not None:
        member = head.members.get(head.holder)
        found["held-back-by"] = head.holder
        if member is not None and member.newest is not None:
            found["reached"] = member.reached
    return found


def _open(head: Head, window: Window) -> list[dict[str, int]]:
    if window.kind == "count":
        size, every = window.count or 1, window.every_count or 1
        missing = size - head.counted if head.counted < size else every - _beyond(head, window)
        return [{"updates-missing": missing}] if head.panes else []
    if window.kind == "global":
        return [{"start": each.oldest, "end": each.newest + 1} for each in head.panes]
    spans = _sessions(head, window) if window.kind == "session" else _of_time(head, window)
    return [{"start": begin, "end": end} for end, begin in sorted(set(spans))[:MOST]]


def _beyond(head: Head, window: Window) -> int:
    return (head.counted - (window.count or 1)) % (window.every_count or 1)


def _sessions(head: Head, window: Window) -> Iterable[tuple[int, int]]:
    return [
        (end_of(each, window, head.per_second), each.oldest)
        for each in head.panes
        if each.out is None
    ]


def _of_time(head: Head, window: Window) -> Iterable[tuple[int, int]]:
    grid = grid_of(window, head.per_second)
    spans = [grid.pane_of(pane.newest) for pane in head.panes]
    for span in [each for each in spans if grid.last_end(each) > head.closed][:MOST]:
        for end in grid.ends(span, head.closed, grid.last_end(span))[:MOST]:
            yield end, grid.begin_of(end)
