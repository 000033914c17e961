"""Two runs, or what came before and after a change: which steps take longer, and is it chance?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from monitoring.analysis.analysing import Values, gathered
from monitoring.analysis.ranks import holm, mann_whitney
from monitoring.analysis.steps import Step

Verdict = Literal["slower", "faster", "alike", "too few", "only before", "only after"]
WORSE: Verdict = "slower"


class Thresholds(NamedTuple):
    """From where on a difference counts; all have to be passed."""

    chance: float = 0.01
    """how probable a false alarm may be, over all that is compared together"""
    change: float = 0.10
    """part of the middle by which the other one differs"""
    least: int = 20
    """values of each; of fewer nothing is said"""
    least_ns: float = 0.0
    """difference of the middles"""


class Compared(msgspec.Struct, frozen=True, rename="camel"):
    """One thing in both; times in ns. What there is only one of has no numbers of the other."""

    kind: Literal["runtime", "latency", "sequences"]
    what: str
    verdict: Verdict
    times: tuple[int, int]
    before: float | None
    """the middle"""
    after: float | None
    change: float | None
    """part of the middle before"""
    larger: float | None
    """the probability that one after takes longer than one before"""
    p: float | None
    """by Mann and Whitney, corrected by Holm"""


def compared(
    before: Sequence[Step], after: Sequence[Step], thresholds: Thresholds
) -> list[Compared]:
    """Compare runtimes of steps, latencies between them, and sequences; the worst come first."""
    pairs = _pairs(gathered(before), gathered(after))
    tested = [
        number
        for number, (_, _, one, other) in enumerate(pairs)
        if min(len(one), len(other)) >= thresholds.least
    ]
    ranked = [mann_whitney(pairs[number].one, pairs[number].other) for number in tested]
    corrected = holm([each.p for each in ranked])
    found = [_untested(each) for each in pairs]
    for number, rank, p in zip(tested, ranked, corrected, strict=True):
        kind, what, one, other = pairs[number]
        middles = _middle(one), _middle(other)
        found[number] = Compared(
            kind=kind,
            what=what,
            verdict=_verdict(middles, p, thresholds),
            times=(len(one), len(other)),
            before=middles[0],
            after=middles[1],
            change=(middles[1] - middles[0]) / middles[0] if middles[0] else None,
            larger=rank.larger,
            p=p,
        )
    order = [WORSE, "faster", "only before", "only after", "alike", "too few"]
    return sorted(
        found, key=lambda each: (order.index(each.verdict), -abs(each.change or 0), each.what)
    )


class _Pair(NamedTuple):
    kind: Literal["runtime", "latency", "sequences"]
    what: str
    one: Sequence[float]
    other: Sequence[float]


def _pairs(one: Values, other: Values) -> list[_Pair]:
    found = []
    for kind in ("runtime", "latency"):
        mine, theirs = _by_purpose(getattr(one, kind)), _by_purpose(getattr(other, kind))
        for what in sorted({*mine, *theirs}):
            found.append(_Pair(kind, what, mine.get(what, ()), theirs.get(what, ())))
    if one.sequences or other.sequences:
        found.append(_Pair("sequences", "sequence", one.sequences, other.sequences))
    return found


def _by_purpose(values: dict[tuple[str, str], list[float]]) -> dict[str, list[float]]:
    """Those of all nodes together: a process that begins anew is another one."""
    found: dict[str, list[float]] = {}
    for (purpose, _node), some in values.items():
        found.setdefault(purpose, []).extend(some)
    return found


def _untested(pair: _Pair) -> Compared:
    kind, what, one, other = pair
    verdict: Verdict = "too few" if one and other else "only before" if one else "only after"
    return Compared(
        kind=kind,
        what=what,
        verdict=verdict,
        times=(len(one), len(other)),
        before=_middle(one) if one else None,
        after=_middle(other) if other else None,
        change=None,
        larger=None,
        p=None,
    )


def _verdict(middles: tuple[float, float], p: float, thresholds: Thresholds) -> Verdict:
    before, after = middles
    apart = abs(after - before)
    if p >= thresholds.chance or apart < thresholds.least_ns or not apart:
        return "alike"
    if apart < thresholds.change * before:
        return "alike"
    return WORSE if after > before else "faster"


def _middle(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
