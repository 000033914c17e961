"""The paper's analyses: runtime of steps, latency between them, runtime of sequences.

And one more: how much of a sequence no step takes, which is what the framework around them does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from monitoring.analysis import clocks
from monitoring.analysis.clocks import Apart
from monitoring.analysis.steps import Read, Step

MAX_ROWS = 1_000
"""Of a table; others are not told apart any more."""
OTHERS = "others"


class Spread(msgspec.Struct, frozen=True):
    """How values lie: in ns, or parts of 1."""

    what: str
    node: str
    """empty: of all nodes. Of a latency the machines between whose steps it lies, empty for one,
    of which there is one clock"""
    count: int
    least: float
    low: float
    """a quarter lies below"""
    middle: float
    high: float
    p99: float
    most: float


class Analysis(msgspec.Struct, frozen=True):
    """All that is told of some measurements."""

    runtime: list[Spread]
    latency: list[Spread]
    sequences: list[Spread]
    framework: list[Spread]
    steps: int
    skipped: int
    clocks: list[Apart] = []
    """of machines whose steps follow each other"""


class Values(NamedTuple):
    """What steps say, value by value: in ns by what and node, or parts of 1."""

    runtime: dict[tuple[str, str], list[float]]
    latency: dict[tuple[str, str], list[float]]
    sequences: list[float]
    framework: list[float]


def analysed(read: Read) -> Analysis:
    """Return what the steps say."""
    found = gathered(read.steps)
    whole, framework = found.sequences, found.framework
    return Analysis(
        [spread(*each) for each in sorted(found.runtime.items())],
        [spread(*each) for each in sorted(found.latency.items())],
        [spread(("sequence", ""), whole)] if whole else [],
        [spread(("no step", ""), framework)] if framework else [],
        len(read.steps),
        read.skipped,
        clocks.apart(read.steps),
    )


def gathered(all_steps: Iterable[Step]) -> Values:
    """Return the runtimes of steps, what lies between them, and what sequences took."""
    runtime: dict[tuple[str, str], list[float]] = defaultdict(list)
    latency: dict[tuple[str, str], list[float]] = defaultdict(list)
    whole: list[float] = []
    framework: list[float] = []
    together: dict[str, list[Step]] = defaultdict(list)
    for each in all_steps:
        runtime[_bounded(runtime, (each.purpose, each.node))].append(each.end - each.start)
        together[each.sequence].append(each)
    for steps in together.values():
        steps.sort(key=lambda each: (each.start, -each.end))
        for before, after in _pairs(steps):
            key = f"{before.purpose} to {after.purpose}", clocks.between(before, after)
            latency[_bounded(latency, key)].append(after.start - before.end)
        if len(steps) > 1:
            lasted = max(each.end for each in steps) - steps[0].start
            whole.append(lasted)
            if lasted:
                framework.append(1 - _covered(_innermost(steps)) / lasted)
    return Values(runtime, latency, whole, framework)


def _bounded(known: dict[tuple[str, str], list[float]], key: tuple[str, str]) -> tuple[str, str]:
    return key if key in known or len(known) < MAX_ROWS else (OTHERS, "")


def _pairs(steps: Sequence[Step]) -> Iterator[tuple[Step, Step]]:
    """The last step that has ended, and the next one that begins."""
    ends = sorted(steps, key=lambda each: each.end)
    place = -1
    for each in steps:
        while place + 1 < len(ends) and ends[place + 1].end <= each.start:
            place += 1
        if place >= 0 and ends[place] is not each:
            yield ends[place], each


def _innermost(steps: Sequence[Step]) -> list[Step]:
    """Those in which no other lies; steps come by their start, and longer ones first."""
    inner = [
        each
        for each, after in pairwise(steps)
        if not (after.start >= each.start and after.end <= each.end)
    ]
    return [*inner, steps[-1]]


def _covered(steps: Iterable[Step]) -> int:
    """Ns in which at least one of them runs."""
    covered = until = 0
    for each in steps:
        covered += max(0, each.end - max(each.start, until))
        until = max(until, each.end)
    return covered


def spread(key: tuple[str, str], values: list[float]) -> Spread:
    """Return how values lie, at least one, of what and which node. Puts them in order."""
    what, node = key
    values.sort()

    def at(part: float) -> float:
        return values[min(len(values) - 1, int(len(values) * part))]

    return Spread(
        what, node, len(values), at(0), at(0.25), at(0.5), at(0.75), at(0.99), values[-1]
    )
