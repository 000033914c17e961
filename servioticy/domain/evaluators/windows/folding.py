"""Folds: what a document's own function makes of each window, update after update.

A window is folded by its number: its end, or of windows of so many updates how many have come by
then. Its state is an entry of its own, so a commit writes those that an update has changed. Code
runs in the tenant's sandbox, in one frame for all windows that the update is in.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from sandbox.program import Program
from sandbox.trees import Call, Grown
from servioticy.domain.evaluators.operators import Ends, Entries, Step
from servioticy.domain.evaluators.windows.head import Head
from servioticy.domain.evaluators.windows.one_value import (
    MAX_PROGRAMS,
    how_it_ended,
    one_value,
    value_of,
)
from servioticy.domain.scripts import fold_program
from servioticy.domain.verdicts import ERROR
from servioticy.domain.windowed import FOLD
from servioticy.domain.windows.model import Fold

MAX_STATE_BYTES = 16_384
"""Of the state of one window, as JSON."""

MAX_DROPPED = 200
"""States that one computation gives up; others go later."""


class _State(msgspec.Struct, array_like=True):
    value: bytes = b"null"
    """JSON."""
    problem: str = ""
    """Why there is none any more: then it is not folded again."""


_states = msgspec.msgpack.Decoder(_State)
_encoder = msgspec.msgpack.Encoder()


class Folds:
    """The states of the windows of one composite. Where it has no fold, there are none."""

    def __init__(self, fold: Fold | None, step: Step, entries: Entries, head: Head) -> None:
        self._fold = fold
        self._step = step
        self._entries = entries
        self._head = head
        self.problem: tuple[str, str] | None = None
        """The kind of verdict, and why, where a window that the update is in has no state now."""

    @property
    def are(self) -> bool:
        """Whether windows have states."""
        return self._fold is not None

    def take(self, windows: Sequence[int]) -> None:
        """Fold the update that has come into these windows. Raises Lacking."""
        if self._fold is None:
            return
        self.know(windows)
        known = {number: self._known(number) for number in windows}
        open_ = [number for number in windows if not known[number].problem]
        if not open_:
            return
        asked = self._asked(self._fold, [known[number].value for number in open_])
        for number, grown in zip(open_, self._step.run(asked), strict=False):
            self._put(number, grown)

    def know(self, windows: Sequence[int]) -> None:
        """Raise Lacking unless their states are known."""
        if self.are:
            self._entries.need([self._key(each) for each in windows])

    def sizes(self, windows: Sequence[int]) -> list[int]:
        """The bytes of their states, which have to be known."""
        self.know(windows)
        return [len(self._known(each).value) if self.are else 0 for each in windows]

    def state(self, window: int) -> bytes | None:
        """Its state as JSON; None: there is no fold. Raises Ends where that has failed."""
        if self._fold is None:
            return None
        found = self._known(window)
        if found.problem:
            raise Ends(ERROR, f"the fold of a window has failed: {found.problem}")
        return found.value

    def give_up(self, until: int) -> bool:
        """Keep no states of windows up to this one, some at a time; whether others are left."""
        folded = self._head.folded
        over = bisect_right(folded, until)
        some = folded[: min(over, MAX_DROPPED)]
        self._drop(self._head.generation, some)
        self._head.folded = folded[len(some) :]
        return over > len(some)

    def clear(self, generation: int, windows: list[int], room: int) -> list[int]:
        """Keep no states of a version before; returns those that are left."""
        some = windows[: max(0, min(room, MAX_DROPPED))]
        self._drop(generation, some)
        return windows[len(some) :]

    def _drop(self, generation: int, windows: Sequence[int]) -> None:
        keys = [_key(generation, each) for each in windows]
        self._entries.need(keys)
        for key in keys:
            self._entries.drop(key)

    def _put(self, number: int, grown: Grown) -> None:
        state = self._folded(grown)
        if state.problem:
            state.problem = f"{self._step.trigger.timestamp}: {state.problem}"
        self._entries.put(self._key(number), _encoder.encode(state))
        folded = self._head.folded
        place = bisect_left(folded, number)
        if folded[place : place + 1] != [number]:
            folded.insert(place, number)

    def _folded(self, grown: Grown) -> _State:
        """What has come of it; how that ends is noted where it is no state."""
        state = value_of(grown)
        if state is None:
            self.problem = how_it_ended(grown)
            kind, message = self.problem
            return _State(b"", message or kind)
        if len(state) > MAX_STATE_BYTES:
            self.problem = ERROR, f"{FOLD}: the state has more than {MAX_STATE_BYTES} bytes"
            return _State(b"", self.problem[1])
        return _State(state)

    def _asked(self, fold: Fold, states: Sequence[bytes]) -> list[Call]:
        step = self._step
        program = _program(fold, step.code.arguments, step.name)
        updates = b",".join([_value(each) for each in self._updates()])
        timestamp = step.trigger.timestamp
        form = b'{"windows":[{"value":%b,"own":true},%b],"lastUpdate":%d}'
        return [
            one_value(program, step.name, timestamp, form % (state, updates, timestamp))
            for state in states
        ]

    def _updates(self) -> list[bytes | None]:
        """What each input has, as a composite without windows would find it."""
        step = self._step
        trigger = step.trigger.document or b"{}"
        if not step.inputs:  # there is one only
            return [trigger]
        return [
            trigger if number == step.argument else each and each.document
            for number, each in enumerate(step.inputs)
        ]

    def _known(self, window: int) -> _State:
        value = self._entries.get(self._key(window))
        return _State() if value is None else _states.decode(value)

    def _key(self, window: int) -> bytes:
        return _key(self._head.generation, window)


def _key(generation: int, window: int) -> bytes:
    return b"%d.f%d" % (generation, window)


def _value(document: bytes | None) -> bytes:
    return b"null" if document is None else b'{"value":%b}' % document


@lru_cache(MAX_PROGRAMS)
def _program(fold: Fold, inputs: tuple[str, ...], name: str) -> Program:
    return fold_program(fold, inputs, name)
