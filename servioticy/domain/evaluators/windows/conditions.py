"""Conditions: code that says when a window comes out before its end.

It is asked of each open window that an update is in, and lets that out where it has become true:
it was not when it was asked last, or never was. Once for all windows of an update, in one frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import cast

from sandbox.program import Program
from sandbox.revisions import without_revision
from sandbox.trees import Grown
from servioticy.domain.evaluators.operators import Output, Step
from servioticy.domain.evaluators.windows.cutting import Closed
from servioticy.domain.evaluators.windows.head import Head
from servioticy.domain.evaluators.windows.one_value import (
    MAX_PROGRAMS,
    how_it_ended,
    one_value,
    value_of,
)
from servioticy.domain.scripts import condition_program
from servioticy.domain.windowed import WindowsOf
from servioticy.domain.windows.model import Window

TRUE = b"true"


class Conditions:
    """The condition of one composite. Where it has none, whatever comes out does."""

    def __init__(self, code: WindowsOf, step: Step, head: Head) -> None:
        self._code = code
        self._step = step
        self._head = head
        self.problem: tuple[str, str] | None = None
        """The kind of verdict, and why, where it cannot be told whether a window comes out."""

    def let_out(
        self, coming: Sequence[Closed], outputs: Sequence[Output]
    ) -> list[tuple[Closed, Output]]:
        """Return those that come out, and their outputs: all that have ended, and others by it.

        All that is needed has to be known: code is run here.
        """
        pairs = list(zip(coming, outputs, strict=True))
        if not self._code.has_condition:
            return pairs
        held = self._held()
        early = [number for number, each in enumerate(coming) if each.is_early]
        answers = self._asked([outputs[number] for number in early])
        passed = set()
        for number, grown in zip(early, answers, strict=False):
            window = coming[number].number
            if self._is_true(grown):
                if window not in held:
                    passed.add(number)
                held.add(window)
            else:
                held.discard(window)
        self._head.held = sorted(held)
        return [
            each
            for number, each in enumerate(pairs)
            if number in passed or not coming[number].is_early
        ]

    def _held(self) -> set[int]:
        """The open windows of which it was true."""
        head, by = self._head, _digest(self._code)
        if head.held_by != by:
            head.held_by, head.held = by, []
        if cast(Window, self._code.window).kind == "session":
            return {each.begin for each in head.panes}.intersection(head.held)
        return {each for each in head.held if each > head.closed}

    def _asked(self, outputs: Sequence[Output]) -> Sequence[Grown]:
        if not outputs:
            return []
        step = self._step
        program = _program(self._code, step.code.arguments, step.name)
        return step.run(
            [
                one_value(program, step.name, each.timestamp, without_revision(each.document))
                for each in outputs
            ]
        )

    def _is_true(self, grown: Grown) -> bool:
        value = value_of(grown)
        if value is None:
            self.problem = how_it_ended(grown)
        return value == TRUE


@lru_cache(MAX_PROGRAMS)
def _program(code: WindowsOf, inputs: tuple[str, ...], name: str) -> Program:
    return condition_program(code, inputs, name)


def _digest(code: WindowsOf) -> bytes:
    condition = cast(Window, code.window).when, code.references
    return sha256(repr(condition).encode("utf-8", "surrogatepass")).digest()[:8]
