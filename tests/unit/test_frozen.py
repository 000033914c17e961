"""What is written for another process of ours comes out of `pickle.loads` as it was."""

from __future__ import annotations

import pickle
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import pytest

from servioticy.apart.frozen import written
from servioticy.domain.model import Channel, StreamRef


@dataclass(frozen=True, slots=True)
class One:
    only: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    first: Any
    second: Any = None


@dataclass(frozen=True, slots=True)
class Counted:
    first: int
    second: int
    both: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "both", self.first + self.second)


@dataclass(frozen=True, slots=True)
class Named:
    first: int
    _: KW_ONLY
    second: int
    third: int = 3


@dataclass
class Changing:
    first: int
    second: int


@pytest.mark.parametrize(
    "value",
    [
        One((1, 2)),
        Pair(1, [Pair("a"), {"b": One(())}]),
        Counted(1, 2),
        Named(1, second=2),
        Changing(1, 2),
        Channel("x", "number", None, "a=>1"),
        Pair(StreamRef("so", "s"), 7),
        [Pair, One],
    ],
)
def test_it_comes_out_as_it_was(value: Any) -> None:
    assert pickle.loads(written(value)) == value


def test_one_that_stands_twice_is_one() -> None:
    """As much is kept of it as was there before."""
    channel = Channel("x", "number")
    first, second = pickle.loads(written((channel, Pair(channel))))

    assert second.first is first
