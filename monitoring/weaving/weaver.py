"""Which functions of this process are woven, and by which aspect."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import msgspec

from monitoring.configuration import Aspect
from monitoring.model import Node
from monitoring.outbox import Outbox
from monitoring.pointcuts import Pointcut, named
from monitoring.weaving.places import Place, is_within, places
from monitoring.weaving.recorder import Recorder
from monitoring.weaving.trampoline import NotWeavable, nests, woven

MOST_TOLD = 20
"""Of what a pointcut could not be woven into."""


class Report(msgspec.Struct, frozen=True):
    """What has become of one pointcut here: how many functions are woven, and why others not."""

    pointcut: str
    woven: int
    not_woven: dict[str, str]

    @property
    def has_place(self) -> bool:
        """Whether this process has anything that the pointcut names."""
        return bool(self.woven or self.not_woven)


class _Woven(NamedTuple):
    aspect: Aspect
    name: str
    function: Any
    """a FunctionType, which in a class is a method to type checkers"""
    before: CodeType
    code: CodeType
    recorder: Recorder


class Weaver:
    """For one thread. Calls that are under way while it weaves or unweaves end as they began."""

    def __init__(self, node_id: str) -> None:
        self._node_id = node_id
        self._woven: dict[int, _Woven] = {}
        # Nobody publishes for a fork.
        os.register_at_fork(after_in_child=self.unweave)

    def weave(self, aspects: Sequence[Aspect], outbox: Outbox) -> list[Report]:
        """Let these aspects be woven and no others; return a report for each.

        A function is woven once, by the first aspect that names it.
        """
        taken: dict[int, Aspect] = {}
        ours = [each for each in aspects if each.language == "python"]
        reports = [self._weave(each, outbox, taken) for each in ours]
        for key in [key for key in self._woven if key not in taken]:
            self._restore(self._woven.pop(key))
        return reports

    def unweave(self) -> None:
        """Leave every function as it was."""
        while self._woven:
            self._restore(self._woven.popitem()[1])

    def tell_calls(self) -> None:
        """Have all that count publish it."""
        for each in self._woven.values():
            each.recorder.tell_calls()

    def _weave(self, aspect: Aspect, outbox: Outbox, taken: dict[int, Aspect]) -> Report:
        count, refused = 0, dict[str, str]()
        for step, place in _meant(aspect.pointcut):
            why = place.why
            if place.function is not None:
                why = self._one(aspect, step, place.name, place.function, outbox, taken)
            if not why:
                count += 1
            elif len(refused) < MOST_TOLD:
                refused[place.name] = why
        return Report(aspect.pointcut, count, refused)

    def _one(
        self,
        aspect: Aspect,
        step: Pointcut,
        name: str,
        function: FunctionType,
        outbox: Outbox,
        taken: dict[int, Aspect],
    ) -> str:
        """Weave one function, unless it is; return why not."""
        key = id(function)
        if key in taken:
            if taken[key] is aspect:
                return ""
            return f"it is woven by the pointcut {taken[key].pointcut}"
        known = self._woven.get(key)
        if known is not None and known.aspect == aspect and function.__code__ is known.code:
            taken[key] = aspect
            return ""
        if known is not None:
            self._restore(self._woven.pop(key))
        places_ = [aspect.sequence] if aspect.sequence else [step.traces, step.sequence]
        paths = [tuple(each.split(".")) for each in places_ if each]
        parameter = paths[0][0] if paths else ""
        before = function.__code__
        node = Node(self._node_id, aspect.purpose or step.name)
        recorder = Recorder(
            aspect, name, node, outbox, [path for _, *path in paths], nests=nests(before)
        )
        try:
            code = woven(function, recorder, parameter)
        except NotWeavable as error:
            return str(error)
        function.__code__ = code
        self._woven[key] = _Woven(aspect, name, function, before, code, recorder)
        taken[key] = aspect
        return ""

    def _restore(self, woven: _Woven) -> None:
        """What somebody else has put there stays: it is not ours to judge."""
        if woven.function.__code__ is woven.code:
            woven.function.__code__ = woven.before
        woven.recorder.tell_calls()


def names(pattern: str, module: str) -> bool:
    """Whether a pattern may name a function of a module."""
    steps = named(pattern)
    if steps:
        return any(is_within(module, each.function) for each in steps)
    return is_within(module, pattern)


def _meant(pattern: str) -> list[tuple[Pointcut, Place]]:
    """What a pattern names here: steps of ours by their names, or functions."""
    steps = named(pattern)
    if steps:
        return [(each, place) for each in steps for place in places(each.function)]
    return [(Pointcut(each.name, each.name), each) for each in places(pattern)]
