"""A small application that is not ours, for aspects to be woven into."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import NamedTuple


class Update(NamedTuple):
    offset: int
    trace: str = ""


def whole(updates: list[Update]) -> int:
    return first(updates) + Table.second(updates)


def first(updates: list[Update]) -> int:
    return len(updates)


class Table:
    @staticmethod
    def second(updates: list[Update]) -> int:
        return updates[0].offset

    def steps(self) -> Iterator[int]:
        yield first([])


@lru_cache
def cached(a: int) -> int:
    return a


def fails() -> None:
    raise ZeroDivisionError


def turns(left: int) -> int:
    return turns(left - 1) if left else 0


async def later(updates: list[Update]) -> int:
    return first(updates)


TABLE = {"first": first}
part = partial(first, [])
length = len
