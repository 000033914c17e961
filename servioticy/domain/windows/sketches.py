"""Quantiles of many numbers in little room, each to one part in a hundred.

Numbers are counted in buckets, each wider than the one before by a factor, gamma: the sketch of
Masson, Rim and Lee, "DDSketch: a fast and fully-mergeable quantile sketch with relative-error
guarantees" (PVLDB 12(12), 2019). Where there are too many buckets all are joined in pairs, as
Epicoco et al. do, "UDDSketch: accurate tracking of quantiles in data streams" (IEEE Access 8,
2020). How often is told by the numbers alone: the least often that suffices for them suffices for
each part of them. So a sketch depends neither on order nor on how its parts were merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor, inf, log
from typing import Any

ERROR = 0.01
"""The relative one, while there are few enough buckets; each joining about doubles it."""
GAMMA = (1 + ERROR) / (1 - ERROR)
_LOG_GAMMA = log(GAMMA)
MAX_BUCKETS = 2048
"""Of each sign: numbers of 17 orders of magnitude, if each bucket has some. All that floats hold
are 72,700 buckets, so they are joined six times at most."""

Buckets = dict[int, int]
"""How many numbers are in each bucket, by index: bucket i is (gamma**(i-1), gamma**i]."""


class Sketch:
    """How numbers are distributed. `level`: how often buckets were joined."""

    __slots__ = ("level", "negative", "positive", "zero")

    def __init__(
        self,
        level: int = 0,
        zero: int = 0,
        positive: Buckets | None = None,
        negative: Buckets | None = None,
    ) -> None:
        self.level = level
        self.zero = zero
        self.positive: Buckets = {} if positive is None else positive
        self.negative: Buckets = {} if negative is None else negative
        """by magnitude"""

    @property
    def gamma(self) -> float:
        """By what factor a bucket is wider than the one before."""
        return float(GAMMA ** (1 << self.level))

    def add(self, number: float) -> None:
        """Take a finite number."""
        if number == 0:
            self.zero += 1
            return
        buckets = self.positive if number > 0 else self.negative
        index = _joined(ceil(log(abs(number)) / _LOG_GAMMA), self.level)
        buckets[index] = buckets.get(index, 0) + 1
        if len(buckets) > MAX_BUCKETS:
            self._fit()

    def merge(self, other: Sketch) -> None:
        """Take all that the other one has."""
        if other.level > self.level:
            self._join(other.level - self.level)
        self.zero += other.zero
        times = self.level - other.level
        for mine, others in (
            (self.positive, other.positive),
            (self.negative, other.negative),
        ):
            for index, count in others.items():
                joined = _joined(index, times)
                mine[joined] = mine.get(joined, 0) + count
        self._fit()

    def quantile(self, q: float, least: float, most: float) -> float:
        """Return the number below which a part q of all is, as far as buckets tell.

        `least` and `most` are those of all numbers, of which there is one at least.

        The rule, by which scripts read it, too: of n numbers in ascending order, that of
        rank floor(q * (n - 1)), the first being of rank 0, is in some bucket; its value is
        2 * gamma**i / (gamma + 1), with the sign of its side, but no less than the least of all
        and no more than the most.
        """
        sign, index = self._bucket(floor(q * (self.count - 1)))
        return min(max(sign * self._middle(index), least), most)

    def _bucket(self, rank: int) -> tuple[int, int]:
        """Return sign and index of the bucket that has the number of this rank."""
        below = 0
        for sign, index, count in self._ascending():
            below += count
            if below > rank:
                return sign, index
        raise IndexError(rank)

    def _middle(self, index: int) -> float:
        """Return what is equally far from both ends of a bucket, as parts of them."""
        gamma = self.gamma
        try:
            return 2 * gamma**index / (gamma + 1)
        except OverflowError:
            return inf

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return self.zero + sum(self.positive.values()) + sum(self.negative.values())

    def as_json(self) -> dict[str, Any]:
        """Return it as scripts know it."""
        return {
            "gamma": self.gamma,
            "zero": self.zero,
            "positive": [list(each) for each in sorted(self.positive.items())],
            "negative": [list(each) for each in sorted(self.negative.items())],
        }

    def _ascending(self) -> Iterator[tuple[int, int, int]]:
        """The buckets from the least number on: sign, index, count."""
        for index, count in sorted(self.negative.items(), reverse=True):
            yield -1, index, count
        yield 0, 0, self.zero
        for index, count in sorted(self.positive.items()):
            yield 1, index, count

    def _fit(self) -> None:
        while max(len(self.positive), len(self.negative)) > MAX_BUCKETS:
            self._join(1)

    def _join(self, times: int) -> None:
        self.level += times
        self.positive = _coarser(self.positive, times)
        self.negative = _coarser(self.negative, times)


def _joined(index: int, times: int) -> int:
    """Return the index of a bucket when buckets were joined so often: rounded up."""
    return -(-index >> times)


def _coarser(buckets: Buckets, times: int) -> Buckets:
    found: Buckets = {}
    for index, count in buckets.items():
        joined = _joined(index, times)
        found[joined] = found.get(joined, 0) + count
    return found
