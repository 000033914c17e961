"""The advice that measures: who calls is not to notice, whatever happens here."""

from __future__ import annotations

import gc
import itertools
import resource
import time
from collections.abc import Sequence
from contextlib import suppress
from contextvars import Token
from pathlib import Path
from threading import get_ident
from typing import Any, NamedTuple

from monitoring.configuration import Aspect
from monitoring.model import Calls, Node, ResourceProfile, RuntimePerformance
from monitoring.outbox import Outbox
from monitoring.sequences import (
    AROUND,
    TRACE_LENGTH,
    Around,
    Correlated,
    found,
    fresh,
    fresh_step,
    is_sampled,
)

PAGE = resource.getpagesize()
LINKS_A_PLACE = 8
"""Of as many bytes as a measurement without links."""


class _Entered(NamedTuple):
    """A call that is under way. `began` is 0 where it is not measured."""

    about: Correlated
    step: str
    token: Token[Around | None] | None
    at: int
    began: int
    profile: tuple[int, int, int] | None


class Recorder:
    """Measures the calls of one function."""

    def __init__(
        self,
        aspect: Aspect,
        place: str,
        node: Node,
        outbox: Outbox,
        paths: Sequence[Sequence[str]] = (),
        *,
        nests: bool,
    ) -> None:
        """`paths` lead from the argument that `enter` is given to what it is about, the first that
        leads anywhere; without one it is given none.

        `nests`: what is woven and called meanwhile belongs to the same sequence.
        """
        self._aspect, self._place, self._node, self._outbox = aspect, place, node, outbox
        self._paths, self._nests = [tuple(each) for each in paths], nests
        self._counts = "count" in aspect.measures
        self._times = "runtime" in aspect.measures
        self._profiles = "profile" in aspect.measures
        self._called, self._raised = itertools.count(1), itertools.count(1)
        self._calls = self._failed = 0
        self._told = 0, 0

    def enter(self, correlated: Any) -> _Entered | None:
        """Begin to measure a call; None: it is not measured."""
        try:
            return self._enter(correlated)
        except Exception:  # noqa: BLE001  of ours, not of whoever calls
            self._outbox.drop()
            return None

    def leave(self, entered: _Entered | None, error: BaseException | None) -> None:
        """End it."""
        if entered is None:
            return
        try:
            self._leave(entered, error)
        except Exception:  # noqa: BLE001  of ours, not of whoever calls
            self._outbox.drop()

    def tell_calls(self) -> None:
        """Publish how often it was called since the last time, if at all. For one thread."""
        calls, failed = self._calls, self._failed
        before, self._told = self._told, (calls, failed)
        if calls != before[0]:
            new = calls - before[0], failed - before[1]
            self._outbox.put(Calls(self._node, self._place, time.time_ns(), *new))

    def _enter(self, correlated: Any) -> _Entered | None:
        if get_ident() in self._outbox.silent:
            return None
        if self._counts:
            self._calls = next(self._called)
            if not (self._times or self._profiles):
                return _COUNTED
        about = self._about(correlated)
        if not self._is_sampled(about):
            before = AROUND.get()
            hides = self._nests and (before is None or before.sequence != about.sequence)
            token = AROUND.set(Around(about.sequence, "")) if hides else None
            return _Entered(about, "", token, 0, 0, None)
        step = fresh_step()
        token = AROUND.set(Around(about.sequence, step)) if self._nests else None
        profile = _profile() if self._profiles else None
        if self._aspect.advice == "before":
            self._tell(about, step, time.time_ns(), None)
            return _Entered(about, step, token, 0, 0, None)
        return _Entered(about, step, token, time.time_ns(), time.perf_counter_ns(), profile)

    def _about(self, correlated: Any) -> Correlated:
        """What a call is about: what its argument says, else what the call around it is."""
        links: tuple[str, ...] = ()
        for path in self._paths:
            about = found(correlated, path)
            links = links or about.links
            if about.sequence:
                break
        else:
            about = Correlated()
        around = AROUND.get()
        if not about.sequence and around is not None:
            return Correlated(around.sequence, around.step, links)
        if around is not None and around.sequence == about.sequence and around.step:
            return Correlated(about.sequence, around.step, links)
        return Correlated(about.sequence or fresh(), about.parent, links)

    def _is_sampled(self, about: Correlated) -> bool:
        """A call about several pieces of work is measured with any of them."""
        rate = self._aspect.sample
        return is_sampled(about.sequence, rate) or any(
            is_sampled(each[:TRACE_LENGTH], rate) for each in about.links
        )

    def _tell(
        self, about: Correlated, step: str, start: int | None, end: int | None, kind: str = ""
    ) -> None:
        sequence, parent, links = about
        self._outbox.put(
            RuntimePerformance(
                *(self._node, self._place, start, end, sequence, kind, step, parent, links)
            ),
            1 + len(links) // LINKS_A_PLACE,
        )

    def _leave(self, entered: _Entered, error: BaseException | None) -> None:
        about, step, token, at, began, before = entered
        end = at + time.perf_counter_ns() - began
        if token is not None:
            _forget(token)
        if error is not None and self._counts and not isinstance(error, GeneratorExit):
            self._failed = next(self._raised)
        if not began:
            return
        if before is not None:
            grown = [now - then for now, then in zip(_profile(), before, strict=True)]
            self._outbox.put(
                ResourceProfile(self._node, self._place, at, end, about.sequence, *grown)
            )
        if self._times:
            kind = "" if error is None else type(error).__name__[:100]
            start = at if self._aspect.advice == "around" else None
            self._tell(about, step, start, end, kind)


_COUNTED = _Entered(Correlated(), "", None, 0, 0, None)


def _forget(token: Token[Around | None]) -> None:
    with suppress(ValueError):  # a coroutine that is closed from elsewhere: that keeps its own
        AROUND.reset(token)


def _profile() -> tuple[int, int, int]:
    """Processor time of this thread, resident memory, and runs of garbage collection."""
    pages = _read("/proc/self/statm").split()[1:2]
    collections = sum(each["collections"] for each in gc.get_stats())
    return time.thread_time_ns(), int(pages[0]) * PAGE if pages else 0, collections


def _read(file: str) -> str:
    try:
        return Path(file).read_text("ascii")
    except OSError:
        return ""
