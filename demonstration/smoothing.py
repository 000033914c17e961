"""A series smoothed, the band around it, and what falls out of it: computed apart in Python.

The chapter "Streaming Data to the Cloud" finds anomalies so, in section 9.4 (Kinesis, Spark,
and the Array of Things): of values x the smoothed series is s[0] = x[0], and from there on
s[n] = (1 - a) x[n] + a s[n-1]; the deviation is that of the last M values, around their mean and
divided by M; and what is outside [s - k deviations, s + k deviations] is an anomaly. k is 1.3
there. It gives neither a nor M: ours are such that what rises or falls steadily stays well inside
(x[n] is then a / (1 - a) = 2.3 steps from s[n], and the deviation of 24 values is 6.9 steps), and
a jump does not.
"""

from __future__ import annotations

import itertools
import statistics
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

SMOOTHING = 0.7
"""How much of the smoothed series stays: the chapter's alpha."""

VALUES = 24
"""How many the deviation is of: a day of the water main, six hours of the room."""

DEVIATIONS = 1.3


class Point(NamedTuple):
    """A value, and what was expected in its place."""

    at: int
    value: float
    smoothed: float
    low: float
    high: float

    @property
    def is_anomaly(self) -> bool:
        """Whether it is outside its band; a border belongs to it."""
        return not self.low <= self.value <= self.high


def smoothed(values: Iterable[float]) -> Iterator[float]:
    """Yield the smoothed series.

    It is the chapter's recurrence with s[n-1] taken out of both terms: so a series that stands
    still is the same as smoothed, to the last digit.
    """
    return itertools.accumulate(values, lambda s, x: s + (1 - SMOOTHING) * (x - s))


def band(series: Iterable[tuple[int, float]]) -> Iterator[Point]:
    """Yield each value with its band, from that on with which there are enough of them."""
    for_values, for_smoothing = itertools.tee(series)
    last: deque[float] = deque(maxlen=VALUES)
    for (at, x), s in zip(for_values, smoothed(x for _, x in for_smoothing), strict=True):
        last.append(x)
        if len(last) == VALUES:
            reach = DEVIATIONS * statistics.pstdev(last)
            yield Point(at, x, s, s - reach, s + reach)
