"""Which calls belong together: the id that connects the steps of one piece of work.

The id of a trace (`servioticy/domain/traces.py`) holds wherever its update comes; one made of
another argument holds within its process. A call about several traces is of none of them, and
has *links* to all.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache, partial
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias
from zlib import crc32

import msgspec

from servioticy.domain import traces


class Around(msgspec.Struct, frozen=True):
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
MOST_KNOWN = 32
"""Batches of which is known what they say: each stage of the pipeline sees the same one."""
MOST_LOTS = 1_024
"""Of sequences that are asked about again: steps have that of the call around them."""
AT_ONCE = 64
"""Ids that are made together."""
EVERY = "*"
TRACE_LENGTH = 32
LOTS = 2**32


class Correlated(msgspec.Struct, frozen=True):
    """What an argument says of the work that a call is about."""

    sequence: str = ""
    """empty: nothing"""
    parent: str = ""
    """the step that it comes from, in another process perhaps"""
    links: tuple[str, ...] = ()
    """of those traces of several pieces of work that are sampled: trace, `-` and step"""
    lot: int = LOTS
    """the least of the traces of several, sampled or not; LOTS where it says nothing of several"""


NOTHING = Correlated()
UNTRACED = Correlated(lot=LOTS - 1)
"""It is about several, of which none has a trace: they are sampled where everything is."""


class _Ready:
    """Ids that are made many at once. Advice is called once in a while, and finds nothing of what
    it needs in the processor's caches: so an id by itself costs ten times as much.
    """

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make
        self._ids: list[str] = []
        os.register_at_fork(after_in_child=self._ids.clear)  # else both had the same

    def one(self) -> str:
        """Return one that nobody has."""
        try:
            return self._ids.pop()
        except IndexError:
            self._ids += [self._make() for _ in range(AT_ONCE)]
            return self._make()


def _trace() -> str:
    made = f"{random.getrandbits(128) or 1:032x}"
    lot_of(made)  # which is asked for next, and known then
    return made


_TRACES = _Ready(_trace)
_STEPS = _Ready(lambda: f"{random.getrandbits(64) or 1:016x}")


def fresh() -> str:
    """Return the id of a new trace."""
    return _TRACES.one()


def fresh_step() -> str:
    """Return the id of a step that is new."""
    return _STEPS.one()


Values: TypeAlias = Sequence[Any]


class Finder:
    """Finds what stands at a place within arguments; `*` is each of several.

    It is asked with every call, also where that is not measured, so it goes part by part and not
    value by value: a batch has hundreds of updates.
    """

    def __init__(self, path: Sequence[str], sampled: float = LOTS) -> None:
        """`sampled`: of several contexts none is read whose lot is not below it."""
        self._sampled = sampled
        self._parts = [_getter(each) for each in path]
        self._may_be_several = EVERY in path

    def found(self, argument: Any) -> Correlated:
        """Return what stands there: contexts are what they are, else it is an id within SCOPE."""
        values: Values = (argument,)
        for part in self._parts:
            values = part(values)
        if self._may_be_several:
            try:
                found = _said(tuple(values), self._sampled)
            except TypeError:  # what cannot be hashed is no text
                found = _said(tuple(filter(_is_text, values)), self._sampled)
            if found is not NOTHING:
                return found
        values = [each for each in values if each is not None]
        if len(values) != 1 or values[0] == "":
            return NOTHING
        if isinstance(values[0], str) and (link := _link_of(values[0])):
            return Correlated(link[:TRACE_LENGTH], link[TRACE_LENGTH + 1 :])
        return _id(SCOPE.name or os.getpid(), str(values[0])[:MAX_LENGTH])


@lru_cache(MOST_KNOWN)
def _id(scope: str | int, within: str) -> Correlated:
    """An id of a scope; each stage of the pipeline asks for that of its batch."""
    return Correlated(f"{scope}:{within}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


@lru_cache(MOST_KNOWN)
def _said(values: tuple[Any, ...], sampled: float) -> Correlated:
    """What several values say together; NOTHING of one that stands alone, or where is no text."""
    said = [*filter(None, values)]  # of hundreds that are empty mostly
    if len(said) == 1 and len(values) - values.count(None) == 1:
        return NOTHING
    texts = [each for each in said if isinstance(each, str)]
    contexts = [each for each in texts if traces.LENGTH <= len(each) <= traces.MOST]
    if contexts:
        return _several(contexts, sampled)
    return UNTRACED if texts or "" in values else NOTHING


def _several(contexts: Sequence[str], sampled: float) -> Correlated:
    """What contexts say together: their lots tell which are read, a batch has hundreds of others.

    Where more are sampled than are kept, it is those of the least lots: each step keeps the same.
    """
    lots = _lots(contexts)
    least = min(lots.values())
    if least >= sampled:
        return Correlated(lot=least) if least < LOTS else UNTRACED
    chosen = [text for text, lot in lots.items() if lot < sampled]
    if len(chosen) > MOST_LINKS:
        chosen = sorted(chosen, key=lots.__getitem__)[:MOST_LINKS]
    links = _links(chosen)
    return Correlated(links=links, lot=least) if links else UNTRACED


def _lots(contexts: Sequence[str]) -> dict[str, int]:
    """The lot of each, as `_lot` has it; of those that look alike at half of its cost."""
    if {*map(len, contexts)} == {traces.LENGTH}:
        with suppress(UnicodeEncodeError):
            return {each: crc32(each[3:35].encode()) for each in contexts}
    return {each: _lot(each) for each in contexts}


def _lot(text: str) -> int:
    """The lot of a context's trace. What has the length of one is not looked at otherwise; of a
    later version, or with blanks around, it is read. LOTS of what is none.
    """
    if len(text) == traces.LENGTH:
        return crc32(text[3:35].encode(errors="replace"))
    link = _link_of(text)
    return lot_of(link[:TRACE_LENGTH]) if link else LOTS


def _links(contexts: Sequence[str]) -> tuple[str, ...]:
    """Their links, each once. All together: one by one takes five times as long."""
    if traces.are_written(contexts):
        return tuple(dict.fromkeys([each[3:52] for each in contexts]))
    return tuple(dict.fromkeys(filter(None, map(_link_of, contexts))))


def _link_of(text: str) -> str:
    """The trace and the step of a context; empty where it is none."""
    context = traces.read(text) if len(text) >= traces.LENGTH else ""
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
    if len(values) == 1 and isinstance(values[0], list | tuple):
        return values[0] if len(values[0]) <= MOST_LOOKED_AT else values[0][:MOST_LOOKED_AT]
    return [*islice(chain.from_iterable(map(_inner, values)), MOST_LOOKED_AT)]


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, str | bytes):
        return ()
    return value.values() if isinstance(value, Mapping) else value


@lru_cache(MOST_LOTS)
def lot_of(sequence: str) -> int:
    """Return a number below LOTS, the same in every process. What has the least is sampled."""
    return crc32(sequence.encode())


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


def step_under_way(context: str) -> str:
    """Return the measured step of this context's trace within which it is asked; empty: none."""
    around = AROUND.get()
    return around.step if around is not None and around.sequence == traces.id_of(context) else ""
