"""Which calls belong together: the id that connects the steps of one piece of work.

The id of a trace (`servioticy/domain/traces.py`) holds wherever its update comes; one made of
another argument holds within its process. A call about several traces is of none of them, and
has *links* to all.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import islice
from typing import Any, NamedTuple
from zlib import crc32

from servioticy.domain import traces


class Around(NamedTuple):
    """The woven call that is under way here."""

    sequence: str
    step: str
    """its own id, in 16 hexadecimal digits; empty where it is not measured"""


AROUND: ContextVar[Around | None] = ContextVar("monitoring_sequence", default=None)
"""None: no woven call is under way here."""


class _Scope:
    """Where an id that is no trace's means the same: this process, if nothing is said."""

    name = ""


SCOPE = _Scope()
MAX_LENGTH = 64
MOST_LINKS = 64
MOST_LOOKED_AT = 1_000
"""Of one call; a batch may have more updates."""
EVERY = "*"
TRACE_LENGTH = 32


class Correlated(NamedTuple):
    """What an argument says of the work that a call is about."""

    sequence: str = ""
    """empty: nothing"""
    parent: str = ""
    """the step that it comes from, in another process perhaps"""
    links: tuple[str, ...] = ()
    """of the traces of several pieces of work: trace, `-` and step"""


def fresh() -> str:
    """Return the id of a new trace."""
    return f"{random.getrandbits(128) or 1:032x}"


def fresh_step() -> str:
    """Return the id of a step that is new."""
    return f"{random.getrandbits(64) or 1:016x}"


def found(argument: Any, path: tuple[str, ...]) -> Correlated:
    """Return what stands at a place within an argument; `*` is each of several.

    Contexts of traces are what they are; anything else is an id within SCOPE.
    """
    first: Any = ""
    count, links = 0, dict[str, None]()
    for count, value in enumerate(islice(_values(argument, path), MOST_LOOKED_AT), 1):
        first = value if count == 1 else first
        context = traces.read(value) if isinstance(value, str) else ""
        if context:
            links[f"{traces.id_of(context)}-{traces.step_of(context)}"] = None
            if len(links) == MOST_LINKS:
                break
    if count == 1 and links:
        trace, _, step = next(iter(links)).partition("-")
        return Correlated(trace, step)
    if first == "" or (EVERY in path and count > 1):
        return Correlated(links=tuple(links))
    return Correlated(f"{SCOPE.name or os.getpid()}:{str(first)[:MAX_LENGTH]}")


def _values(value: Any, path: Sequence[str]) -> Iterator[Any]:
    for number, each in enumerate(path):
        if each == EVERY:
            inner = value.values() if isinstance(value, Mapping) else value
            if isinstance(inner, str | bytes):
                return
            for one in inner:
                yield from _values(one, path[number + 1 :])
            return
        try:
            value = value[int(each)] if each.isdigit() else _named(value, each)
        except (LookupError, AttributeError, TypeError):
            return
    if value is not None:
        yield value


def _named(value: Any, name: str) -> Any:
    return value[name] if isinstance(value, dict) else getattr(value, name)


def is_sampled(sequence: str, rate: float) -> bool:
    """Whether this part of all sequences has it: each step of it, wherever, says the same."""
    return rate >= 1 or crc32(sequence.encode()) < rate * 2**32


class Maker:
    """Makes contexts for updates that come without one: of the woven call around them, if any."""

    def __init__(self, rate: float) -> None:
        """`rate`: the part of all sequences that any aspect samples. For others none is made."""
        self._rate = rate

    def __call__(self) -> str:
        """Return one; empty where nobody would measure anything of it."""
        around = AROUND.get()
        if around is not None and around.step and len(around.sequence) == TRACE_LENGTH:
            return traces.written(around.sequence, around.step, 1)
        trace = fresh()
        return traces.written(trace, fresh_step(), 1) if is_sampled(trace, self._rate) else ""
