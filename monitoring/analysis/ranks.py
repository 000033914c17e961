"""Mann and Whitney's test, and Holm's correction where many are made at once.

Mann, Whitney: On a test of whether one of two random variables is stochastically larger than the
other (1947), by the normal approximation with a correction for ties and for continuity; Holm: A
simple sequentially rejective multiple test procedure (1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Ranked(NamedTuple):
    """How two samples lie to each other."""

    larger: float
    """the probability that a value of the second is larger than one of the first; ties by half"""
    p: float
    """of samples at least so far apart if both were alike; two-sided"""


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> Ranked:
    """Compare two samples, neither of them empty; good from some twenty values each on."""
    ordered = sorted([(value, 0) for value in first] + [(value, 1) for value in second])
    total, ties, ranks = len(ordered), 0, 0.0
    start = 0
    while start < total:
        end = start
        ones = 0
        while end < total and ordered[end][0] == ordered[start][0]:
            ones += ordered[end][1]
            end += 1
        size = end - start
        ties += size**3 - size
        ranks += ones * (start + end + 1) / 2
        start = end
    pairs = len(first) * len(second)
    u = ranks - len(second) * (len(second) + 1) / 2
    spread = pairs / 12 * (total + 1 - ties / (total * (total - 1))) if total > 1 else 0.0
    if spread <= 0:  # all values are one
        return Ranked(u / pairs, 1.0)
    z = max(0.0, abs(u - pairs / 2) - 0.5) / math.sqrt(spread)
    return Ranked(u / pairs, math.erfc(z / math.sqrt(2)))


def holm(ps: Sequence[float]) -> list[float]:
    """Return them corrected for how many they are: each against the rest that are no smaller."""
    corrected = [0.0] * len(ps)
    most = 0.0
    for place, number in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        most = max(most, min(1.0, ps[number] * (len(ps) - place)))
        corrected[number] = most
    return corrected
