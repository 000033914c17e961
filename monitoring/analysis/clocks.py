"""How far the clocks of machines are apart, as far as steps tell: none begins before its parent.

A latency between steps of two machines is wrong by as much as their clocks differ. A step that was
caused by one on another machine (a part of its trace) began after that one did, whatever the
clocks say; so each such pair bounds the difference from one side, and pairs both ways from both.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from monitoring.analysis.steps import Step

MOST = 100
"""Pairs of machines that are told of."""


class Apart(msgspec.Struct, frozen=True):
    """By how much the clock of `second` is ahead of that of `first`, in ns; None: not bounded."""

    first: str
    second: str
    least: float | None
    most: float | None

    def told(self) -> str:
        """Return it as it is shown to people, in ms."""
        if self.least is None and self.most is None:
            return "clocks unknown"
        if self.least is not None and self.most is not None:
            return f"clocks {self.least / 1e6:+.3f} to {self.most / 1e6:+.3f}"
        if self.most is not None:
            return f"clocks at most {self.most / 1e6:+.3f}"
        return f"clocks at least {(self.least or 0.0) / 1e6:+.3f}"


def machine(node: str) -> str:
    """Return the machine of a node."""
    return node.partition("/")[0]


def between(before: Step, after: Step) -> str:
    """Return which machines' clocks stand in what lies between two steps: empty for one."""
    first, second = machine(before.node), machine(after.node)
    return "" if first == second else f"{first} to {second}"


def apart(all_steps: Iterable[Step]) -> list[Apart]:
    """Return what is known of each two machines whose steps follow each other in a sequence."""
    steps = list(all_steps)
    by_id = {each.step: each for each in steps if each.step}
    least: dict[tuple[str, str], float] = {}
    for each in steps:
        parent = by_id.get(each.parent) if each.parent else None
        if parent is None or machine(parent.node) == machine(each.node):
            continue
        pair = machine(parent.node), machine(each.node)
        gap = float(each.start - parent.start)
        least[pair] = min(gap, least.get(pair, gap))
    machines: dict[str, set[str]] = {}
    for each in steps:
        machines.setdefault(each.sequence, set()).add(machine(each.node))
    pairs = {
        (first, second)
        for some in machines.values()
        if len(some) > 1
        for first in some
        for second in some
        if first < second
    }
    return [_apart(*pair, least) for pair in sorted(pairs)[:MOST]]


def _apart(first: str, second: str, gaps: dict[tuple[str, str], float]) -> Apart:
    back = gaps.get((second, first))
    return Apart(first, second, None if back is None else -back, gaps.get((first, second)))
