"""The advice that measures: who calls is not to notice, whatever happens here."""

from __future__ import annotations

import gc
import itertools
import resource
import time
from collections.abc import Sequence
from contextvars import Token
from pathlib import Path
from threading import get_ident
from typing import Any, TypeAlias

import msgspec

from monitoring.configuration import Aspect
from monitoring.model import Calls, Node, ResourceProfile, RuntimePerformance
from monitoring.outbox import Outbox
from monitoring.sequences import (
    AROUND,
    LOTS,
    Around,
    Finder,
    fresh,
    fresh_step,
    lot_of,
)

PAGE = resource.getpagesize()
LINKS_A_PLACE = 8
"""Of as many bytes as a measurement without links."""


_Before: TypeAlias = "Token[Around | None]"
"""What brings back what AROUND was before a call."""


class _About(msgspec.Struct, frozen=True):
    """What a call is about."""

    sequence: str
    parent: str
    links: tuple[str, ...]
    lot: int
    """the least of its sequence and of the traces that it is about, as lot_of has them"""
    others: bool = False
    """it is about several updates, of which none is sampled"""


class _Entered(msgspec.Struct, frozen=True):
    """A call that is under way. `began` is 0 where it is not measured."""

    about: _About
    step: str
    token: _Before | None
    at: int
    began: int
    profile: tuple[int, int, int] | None
    for_links: bool = False
    """its own sequence is not sampled"""


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
        self._silent = outbox.silent
        self._sampled = aspect.sample * LOTS
        self._finders, self._nests = [Finder(each, self._sampled) for each in paths], nests
        self._counts = "count" in aspect.measures
        self._times = "runtime" in aspect.measures
        self._profiles = "profile" in aspect.measures
        self._called, self._raised = itertools.count(1), itertools.count(1)
        self._calls = self._failed = 0
        self._told = 0, 0

    def enter(self, correlated: Any) -> _Entered | _Before | None:
        """Begin to measure a call; return what `leave` is to know, None where that is nothing."""
        try:
            if get_ident() in self._silent:
                return None
            if self._counts:
                self._calls = next(self._called)
                if not (self._times or self._profiles):
                    return _COUNTED
            around = AROUND.get()
            if around is not None and around.lot >= self._sampled and not self._finders:
                return _COUNTED if self._counts else None  # as most of what a batch calls
            about = self._about(correlated, around)
            if about.lot >= self._sampled:
                return self._unsampled(about, around)
            return self._measured(about)
        except Exception:  # noqa: BLE001  of ours, not of whoever calls
            self._outbox.drop()
            return None

    def leave(self, entered: _Entered | _Before | None, error: BaseException | None) -> None:
        """End it."""
        if entered is None:
            return
        try:
            if isinstance(entered, Token):
                _forget(entered)
            else:
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

    def _measured(self, about: _About) -> _Entered:
        """Begin to measure it."""
        for_links = self._sampled < LOTS and lot_of(about.sequence) >= self._sampled
        step = fresh_step()
        token = AROUND.set(Around(about.sequence, step, about.lot)) if self._nests else None
        profile = _profile() if self._profiles and not for_links else None
        if self._aspect.advice == "before":
            self._tell(about, step, time.time_ns(), None, for_links=for_links)
            return _Entered(about, step, token, 0, 0, None)
        began = time.time_ns(), time.perf_counter_ns()
        return _Entered(about, step, token, *began, profile, for_links)

    def _about(self, correlated: Any, around: Around | None) -> _About:
        """What a call is about: what its argument says, else what the call around it is."""
        links: tuple[str, ...] = ()
        sequence = parent = ""
        least = LOTS
        for each in self._finders:
            found = each.found(correlated)
            if least == LOTS:
                links, least = found.links, found.lot
            if found.sequence:
                sequence, parent = found.sequence, found.parent
                break
        if around is not None and sequence in ("", around.sequence):
            parent, sequence = around.step or parent, around.sequence
            if least == LOTS:
                return _About(sequence, parent, links, around.lot)
        sequence = sequence or fresh()
        others = least < LOTS and not links
        return _About(sequence, parent, links, min(least, lot_of(sequence)), others)

    def _unsampled(self, about: _About, around: Around | None) -> _Entered | _Before | None:
        """Have what is called meanwhile belong to it all the same."""
        token = None
        if self._nests:
            sequence, lot = about.sequence, about.lot
            if around is None or around.sequence != sequence:
                token = AROUND.set(Around(sequence, "", lot))
            elif around.lot != lot:  # it is about a part of what the call around is about
                token = AROUND.set(Around(sequence, around.step, lot))
        return _Entered(about, "", token, 0, 0, None) if self._counts else token

    def _tell(
        self,
        about: _About,
        step: str,
        start: int | None,
        end: int | None,
        kind: str = "",
        *,
        for_links: bool,
    ) -> None:
        self._outbox.put(
            RuntimePerformance(
                *(self._node, self._place, start, end, about.sequence, kind, step, about.parent),
                *(about.links, for_links, about.others),
            ),
            1 + len(about.links) // LINKS_A_PLACE,
        )

    def _leave(self, entered: _Entered, error: BaseException | None) -> None:
        about, at, before = entered.about, entered.at, entered.profile
        end = at + time.perf_counter_ns() - entered.began
        if entered.token is not None:
            _forget(entered.token)
        if error is not None and self._counts and not isinstance(error, GeneratorExit):
            self._failed = next(self._raised)
        if not entered.began:
            return
        if before is not None:
            grown = [now - then for now, then in zip(_profile(), before, strict=True)]
            self._outbox.put(
                ResourceProfile(self._node, self._place, at, end, about.sequence, *grown)
            )
        if self._times:
            kind = "" if error is None else type(error).__name__[:100]
            start = at if self._aspect.advice == "around" else None
            self._tell(about, entered.step, start, end, kind, for_links=entered.for_links)


_COUNTED = _Entered(_About("", "", (), 0), "", None, 0, 0, None)


def _forget(token: _Before) -> None:
    try:  # noqa: SIM105  with suppress() it takes three times as long
        AROUND.reset(token)
    except ValueError:  # a coroutine that is closed from elsewhere: that keeps its own
        pass


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
