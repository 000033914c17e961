"""The criteria of a search, parsed: all of them have to hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from servioticy.domain.model import Timestamp
from servioticy.domain.search.places import Box, Place, metres, place

_WORD = re.compile(r"\w+")
Number: TypeAlias = int | float
Span: TypeAlias = tuple[Timestamp, Timestamp]


def terms(text: str) -> set[str]:
    """Return the words of a text, whatever their case."""
    return set(_WORD.findall(text.casefold()))


def _each(value: Any) -> Iterator[Any]:
    """Yield the values of a channel: those of an array one by one."""
    if isinstance(value, list):
        yield from value
    else:
        yield value


def numbers(value: Any) -> list[Number]:
    """Return the numbers of a channel's value."""
    if type(value) in (int, float):  # neither an array nor a boolean
        return [value]
    return [n for n in _each(value) if isinstance(n, int | float) and not isinstance(n, bool)]


def words(value: Any) -> set[str]:
    """Return the words of a channel's value."""
    return {word for text in _each(value) if isinstance(text, str) for word in terms(text)}


@dataclass(frozen=True, slots=True)
class NumberWithin:
    """A channel's number, or one of its array, lies between two numbers; None: no bound."""

    KIND: ClassVar[str] = "number"

    channel: str
    low: Number | None
    high: Number | None

    def holds(self, value: Any) -> bool:
        """Tell whether it holds for a channel's value."""
        return any(
            (self.low is None or self.low <= each) and (self.high is None or each <= self.high)
            for each in numbers(value)
        )


@dataclass(frozen=True, slots=True)
class PlaceWithin:
    """A channel's place lies in a box, and perhaps no farther than `radius` from `middle`."""

    KIND: ClassVar[str] = "place"

    channel: str
    box: Box
    middle: Place | None = None
    radius: float = 0.0
    """in metres"""

    def holds(self, value: Any) -> bool:
        """Tell whether it holds for a channel's value."""
        at = place(value)
        if at is None or not self.box.holds(at):
            return False
        return self.middle is None or metres(self.middle, at) <= self.radius


@dataclass(frozen=True, slots=True)
class AnyTerm:
    """A channel's text, or one of its array, has one of these words."""

    KIND: ClassVar[str] = "text"

    channel: str
    terms: frozenset[str]

    def holds(self, value: Any) -> bool:
        """Tell whether it holds for a channel's value."""
        return not self.terms.isdisjoint(words(value))


Condition: TypeAlias = NumberWithin | PlaceWithin | AnyTerm


@dataclass(frozen=True, slots=True)
class Criteria:
    """What updates are wanted: of these times, for which all conditions hold; the first ones."""

    spans: tuple[Span, ...]
    """in ascending order, none touching another"""
    conditions: tuple[Condition, ...]
    most: int | None = None
