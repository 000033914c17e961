"""A composite stream over windows is computed as two: its windows, and what code makes of each.

The windows are a stream of their own, which an operator computes from the composite's inputs and
which nobody else reads. It is stored nowhere. The code is woken by each of its updates, a window
that has ended, and reads nothing else of its inputs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from servioticy.domain.model import (
    Composite,
    Dialect,
    Input,
    InputRef,
    Reference,
    ServiceObject,
    Stream,
    WindowRef,
)
from servioticy.domain.windows.model import Fold, Silence, Window

WINDOWS, SILENCE = "windows", "silence"
"""The evaluators of windows, and of silence, which is told as a window is."""

FOLLOWING = "following"
"""The evaluator of what brings a composite its inputs as they were, where one is revised."""

FOLLOW = "follow"
"""The key under which a stream says that it is computed again then."""

FOLD = "fold"
"""The key under which a stream has one, and what messages call it."""

WHEN = "when"
"""The key under which a window has a condition, and what messages call it."""

STATE = "state"
"""The argument under which a fold gets what it has made so far, and code what it has made of a
window: the last of what windows bring."""


@dataclass(frozen=True, slots=True)
class WindowsOf:
    """What the operator of windows, or of silence, runs."""

    window: Window | Silence
    inputs: tuple[tuple[str, ...], ...]
    """Of each the names of the streams that are read through it."""
    dialect: Dialect = "function"
    references: tuple[Reference, ...] = ()
    """In that of expressions, what code of the window refers to."""
    outside: frozenset[str] = frozenset()
    """The names of those that are other tenants'."""

    @property
    def cut(self) -> Hashable:
        """What windows are told by that are open, whatever comes out of them, and when."""
        it = self.window
        if isinstance(it, Silence):
            return it.after, self.inputs
        lengths = it.size, it.every, it.offset, it.gap, it.max, it.count, it.every_count
        cut = it.kind, lengths, it.timezone, it.time, it.delay, it.idle, it.uses, self.inputs
        more = [it.revisions] if it.revisions == "discard" else []
        return *cut, *more, *([] if it.fold is None else [it.fold])

    @property
    def fold(self) -> Fold | None:
        """What is done with each update of a window."""
        return self.window.fold if isinstance(self.window, Window) else None

    @property
    def has_condition(self) -> bool:
        """Whether code says when windows come out before their end."""
        return isinstance(self.window, Window) and self.window.when is not None

    @property
    def reads(self) -> bool:
        """Whether more is read than the update that has come: others' last ones."""
        return self.fold is not None and len(self.inputs) > 1

    @property
    def members(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(self.inputs)))


@dataclass(frozen=True, slots=True)
class FollowedBy:
    """What the operator of what follows revisions runs."""

    inputs: tuple[tuple[str, ...], ...]
    """Of each the names of the streams that are read through it."""
    skips: bool
    """Whether nothing is computed where one had no update."""


def parts(stream: Stream) -> Sequence[Stream]:
    """The streams as which it is computed, what wakes the other first; mostly itself alone."""
    composite = stream.composite
    if composite is None or (composite.window is None and not composite.follows):
        return (stream,)
    if composite.window is None:
        return _following(stream, composite), stream
    return _windows(stream, composite, composite.window), _result(stream, composite)


def _following(stream: Stream, composite: Composite) -> Stream:
    """Return what brings a composite its inputs as they were, as a stream that it reads beside."""
    streams = tuple([tuple(map(str, each.members)) for each in composite.inputs])
    code = FollowedBy(streams, composite.options.missing == "skip")
    brings = Composite(
        composite.dialect,
        composite.inputs,
        (),
        evaluator=FOLLOWING,
        operator=code,
        looks_at_others=False,
    )
    return Stream(WindowRef(*stream.ref), (), brings)


def as_one(service_object: ServiceObject) -> ServiceObject:
    """Return the same, with nothing computed over windows: for what tells who reads whom."""
    definition = service_object.definition
    if not any(
        each.composite and (each.composite.window or each.composite.follows)
        for each in definition.streams
    ):
        return service_object
    streams = tuple(
        [
            replace(each, composite=replace(each.composite, window=None, follows=False))
            if each.composite
            else each
            for each in definition.streams
        ]
    )
    return replace(service_object, definition=replace(definition, streams=streams))


def _windows(stream: Stream, composite: Composite, window: Window | Silence) -> Stream:
    ref = WindowRef(*stream.ref)
    read = composite.inputs
    streams = tuple([tuple(map(str, each.members)) for each in read])
    others = [each for one in read for each in one.members if isinstance(each, InputRef)]
    code = WindowsOf(window, streams, outside=frozenset(map(str, others)))
    if isinstance(window, Window) and window.when is not None:
        code = replace(code, dialect=composite.dialect, references=composite.references)
    evaluator = SILENCE if isinstance(window, Silence) else WINDOWS
    windows = Composite(
        composite.dialect,
        read,
        (),
        evaluator=evaluator,
        operator=code,
        looks_at_others=code.reads,
    )
    return Stream(ref, (), windows)


def _result(stream: Stream, composite: Composite) -> Stream:
    ref = WindowRef(*stream.ref)
    inputs = tuple([Input(each.name, (ref,)) for each in composite.inputs])
    window = composite.window
    if isinstance(window, Window) and window.fold is not None:
        inputs += (Input(STATE, (ref,)),)
    revises = isinstance(window, Window) and window.revises
    result = replace(composite, inputs=inputs, window=None, windowed=True, revises=revises)
    return replace(stream, composite=result)
