"""Which calls belong together: the id that connects the steps of one piece of work.

The id of a trace (`servioticy/domain/traces.py`) holds wherever its update comes; one made of
another argument holds within its process. A call about several traces is of none of them, and
has *links* to all.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache, partial
from heapq import nsmallest
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

from servioticy.domain import traces


class Around(NamedTuple):
    """The woven call that is under way here."""

    sequence: str
    step: str
    """its own id, in 16 hexadecimal digits; empty where it is not measured"""
    lot: int
    """that decides whether it is measured, and what it calls: the least of what it is about"""


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
MOST_KNOWN = 4_096
"""Contexts that are not read again: each stage of the pipeline sees those of its batch."""
EVERY = "*"
TRACE_LENGTH = 32
LOTS = 2**32


class Correlated(NamedTuple):
    """What an argument says of the work that a call is about."""

    sequence: str = ""
    """empty: nothing"""
    parent: str = ""
    """the step that it comes from, in another process perhaps"""
    links: tuple[str, ...] = ()
    """of the traces of several pieces of work: trace, `-` and step"""


NOTHING = Correlated()


def fresh() -> str:
    """Return the id of a new trace."""
    return f"{random.getrandbits(128) or 1:032x}"


def fresh_step() -> str:
    """Return the id of a step that is new."""
    return f"{random.getrandbits(64) or 1:016x}"


Values: TypeAlias = Sequence[Any]


class Finder:
    """Finds what stands at a place within arguments; `*` is each of several.

    It is asked with every call, also where that is not measured, so it goes part by part and not
    value by value: a batch has hundreds of updates.
    """

    def __init__(self, path: Sequence[str]) -> None:
        self._parts = [_getter(each) for each in path]
        self._may_be_several = EVERY in path

    def found(self, argument: Any) -> Correlated:
        """Return what stands there: contexts are what they are, else it is an id within SCOPE."""
        values: Values = (argument,)
        for part in self._parts:
            values = part(values)
        if len(values) == 1 and values[0] == "":
            return NOTHING
        if {*map(type, values)} == {str}:
            texts: Iterable[str] = filter(None, values)
        else:
            values = [each for each in values if each is not None]
            texts = [each for each in values if isinstance(each, str)]
        links = _links(texts)
        if links and len(values) == 1:
            trace, _, step = links[0].partition("-")
            return Correlated(trace, step)
        if not values or values[0] == "" or (self._may_be_several and len(values) > 1):
            return Correlated(links=links) if links else NOTHING
        return Correlated(f"{SCOPE.name or os.getpid()}:{str(values[0])[:MAX_LENGTH]}")


def _links(texts: Iterable[str]) -> tuple[str, ...]:
    """Those of the least lots, where there are more than are kept: each step keeps the same ones,
    and whatever part is sampled, none of it is left out for others.
    """
    found = dict[str, None]()
    for each in texts:
        link = _link(str(each)) if traces.LENGTH <= len(each) <= traces.MOST else ""
        if link:
            found[link] = None
    if len(found) <= MOST_LINKS:
        return tuple(found)
    return tuple(nsmallest(MOST_LINKS, found, lot_of_link))


@lru_cache(MOST_KNOWN)
def _link(text: str) -> str:
    """The trace and the step of a context; empty where it is none."""
    context = traces.read(text)
    return f"{traces.id_of(context)}-{traces.step_of(context)}" if context else ""


def _getter(part: str) -> Callable[[Values], Values]:
    """What a part of a path makes of values; those that have nothing there are left out."""
    if part == EVERY:
        return _each
    if part.isdigit():
        return partial(_one_by_one, itemgetter(int(part)))
    named = attrgetter(part)

    def one(value: Any) -> Any:
        return value[part] if isinstance(value, dict) else named(value)

    if hasattr(dict, part):
        return partial(_one_by_one, one)

    def together(values: Values) -> Values:
        try:
            return [*map(named, values)]
        except (AttributeError, TypeError, LookupError):
            return _one_by_one(one, values)

    return together


def _one_by_one(get: Callable[[Any], Any], values: Values) -> Values:
    found = []
    for each in values:
        try:
            found.append(get(each))
        except (LookupError, AttributeError, TypeError):
            continue
    return found


def _each(values: Values) -> Values:
    return [*islice(chain.from_iterable(map(_inner, values)), MOST_LOOKED_AT)]


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, str | bytes):
        return ()
    return value.values() if isinstance(value, Mapping) else value


def lot_of(sequence: str) -> int:
    """Return a number below LOTS, the same in every process. What has the least is sampled."""
    return crc32(sequence.encode())


@lru_cache(MOST_KNOWN)
def lot_of_link(link: str) -> int:
    """Return the lot of a link's trace."""
    return lot_of(link[:TRACE_LENGTH])


def is_sampled(sequence: str, rate: float) -> bool:
    """Whether this part of all sequences has it: each step of it, wherever, says the same."""
    return lot_of(sequence) < rate * LOTS


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
