"""One trace: every step that was measured of it, in whichever process, and of which batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from monitoring.analysis.steps import TooMany, lines
from monitoring.model import RuntimePerformance

MOST = 10_000
"""Steps of one trace, and of the batches that it is in."""

_SEQUENCE = re.compile(rb'"sequence":"([^"]*)"')


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


def traced(files: Sequence[Path], trace: str) -> list[TracedStep]:
    """Return the steps of a trace, by their beginning. Raises TooMany, OSError.

    What is measured before a step only, or behind it, has no length and is left out. A batch that
    it is in brings the steps that are a part of the batch's, but for those about others.
    """
    return traced_in(partial(lines, files), trace)


def traced_in(
    source: Callable[[], Iterable[bytes]], trace: str, *, with_parts: bool = True
) -> list[TracedStep]:
    """Return the same of lines, which are read twice. Raises TooMany, OSError.

    Without parts: not what is a part of a batch, which is about others as well.
    """
    needle = trace.encode()
    theirs = _steps(line for line in source() if needle in line)
    found = [each for each in theirs if _is_of(each, trace)]
    batches = {each.sequence.encode() for each in found if each.sequence != trace}
    if batches and with_parts:
        found += _parts(found, _steps(_about(batches, source())), trace)
    return _told(sorted(found, key=lambda each: (each.start, -(each.end or 0))))


def _steps(found: Iterable[bytes]) -> Iterator[RuntimePerformance]:
    decoder = msgspec.json.Decoder(RuntimePerformance)
    count = 0
    for line in found:
        try:
            step = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeError):
            continue
        if step.start is None or step.end is None:
            continue
        count += 1
        if count > MOST:
            raise TooMany(f"more than {MOST:,} steps: name fewer files")
        yield step


def _about(sequences: Container[bytes], found: Iterable[bytes]) -> Iterator[bytes]:
    for line in found:
        sequence = _SEQUENCE.search(line)
        if sequence is not None and sequence[1] in sequences:
            yield line


def _parts(
    batches: Iterable[RuntimePerformance], some: Iterable[RuntimePerformance], trace: str
) -> list[RuntimePerformance]:
    """Those of some steps that are a part of these, or of such a part. A call ends, and is told,
    before the one around it."""
    by_parent: dict[str, list[RuntimePerformance]] = {}
    for each in some:
        if each.parent and not (each.links or each.about_others) and each.sequence != trace:
            by_parent.setdefault(each.parent, []).append(each)
    parts: list[RuntimePerformance] = []
    waiting = [each.step for each in batches]
    while waiting:
        inner = by_parent.pop(waiting.pop(), ())
        parts += inner
        waiting += [each.step for each in inner]
    return parts


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
