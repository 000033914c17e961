"""What a stream has used, split among those whose streams have woken its computations.

Each takes the part that its computations are of all: of updates and bytes derived, of those that
emitted; of processor time, of those whose code ran. So nothing is noted of a computation but
who woke it and how it ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from servioticy.domain.model import StreamRef
from servioticy.ports.accounts import UNNAMED, Use, UseKey

MAX_SOURCES = 100
"""Streams of others that are told apart of those that woke one stream: each is a row an hour."""

Wakers: TypeAlias = dict[tuple[int, StreamRef], dict[UseKey, int]]
"""Of each stream of a tenant that others have woken: how often, by account."""


def named(computations: Mapping[UseKey, Mapping[str, int]]) -> Mapping[UseKey, Mapping[str, int]]:
    """Return them with no more than some sources of a stream; the others are not told apart."""
    found: dict[UseKey, Mapping[str, int]] = {}
    sources: Counter[tuple[int, StreamRef]] = Counter()
    for key, ended in computations.items():
        sources[key[:2]] += _is_others(key)
        kept = key if sources[key[:2]] <= MAX_SOURCES else (*key[:3], UNNAMED)
        found[kept] = sum_of(found.get(kept, {}), ended)
    return found


def wakers(
    computations: Iterable[tuple[UseKey, Mapping[str, int]]], kinds: frozenset[str]
) -> Wakers:
    """Return how many computations of these kinds each has woken of streams of others."""
    found: Wakers = {}
    for key, ended in computations:
        times = sum(ended.get(each, 0) for each in kinds)
        if times:
            found.setdefault(key[:2], {})[key] = times
    return {each: keys for each, keys in found.items() if any(_is_others(key) for key in keys)}


def split(amount: int, woken: Mapping[UseKey, int], of: int) -> Iterator[tuple[UseKey, int]]:
    """Yield what falls to each other tenant of an amount that so many computations made."""
    for key, times in woken.items():
        if _is_others(key):
            yield key, amount * times // max(of, 1)


def add(uses: dict[UseKey, Use], key: UseKey, **amounts: int) -> None:
    """Add these amounts to what is to be stored."""
    before = uses.get(key) or Use(*key)
    more = {name: getattr(before, name) + amount for name, amount in amounts.items()}
    uses[key] = before._replace(**more)


def sum_of(counts: Mapping[str, int], more: Mapping[str, int]) -> Mapping[str, int]:
    """Return both together."""
    return {each: counts.get(each, 0) + more.get(each, 0) for each in (*counts, *more)}


def _is_others(key: UseKey) -> bool:
    return key[0] != key[2]
