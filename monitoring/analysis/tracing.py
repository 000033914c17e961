"""One trace: every step that was measured of it, in whichever process, and of which batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from monitoring.analysis.steps import TooMany, lines
from monitoring.model import RuntimePerformance

MOST = 10_000
"""Steps of one trace."""


class TracedStep(msgspec.Struct, frozen=True, rename="camel"):
    """A step of a trace; times in ns."""

    purpose: str
    node: str
    after: int
    """the beginning of the first one"""
    lasted: int
    depth: int
    """0: it is part of no other step that was measured"""
    others: int
    """traces that the same call was about, too"""
    error: str


def traced(files: Iterable[Path], trace: str) -> list[TracedStep]:
    """Return the steps of a trace, by their beginning. Raises TooMany, OSError.

    What is measured before a step only, or behind it, has no length and is left out.
    """
    decoder = msgspec.json.Decoder(RuntimePerformance)
    needle = trace.encode()
    found: list[RuntimePerformance] = []
    for line in lines(files):
        if needle not in line:
            continue
        try:
            step = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeError):
            continue
        if step.start is not None and step.end is not None and _is_of(step, trace):
            found.append(step)
            if len(found) > MOST:
                raise TooMany(f"more than {MOST:,} steps: name fewer files")
    return _told(sorted(found, key=lambda each: (each.start, -(each.end or 0))))


def _is_of(step: RuntimePerformance, trace: str) -> bool:
    return step.sequence == trace or any(each.startswith(f"{trace}-") for each in step.links)


def _told(steps: Sequence[RuntimePerformance]) -> list[TracedStep]:
    depths: dict[str, int] = {}
    told = []
    begin = min((each.start or 0 for each in steps), default=0)
    for each in steps:
        depth = depths[each.step] = depths.get(each.parent, -1) + 1
        start, end = each.start or 0, each.end or 0
        others = max(0, len(each.links) - 1)
        node = each.node
        told.append(
            TracedStep(
                *(node.node_purpose, node.node_id, start - begin, end - start, depth, others),
                each.error,
            )
        )
    return told
