"""What was emitted of some streams, against what should have been."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from benchmarks import hops
from servioticy.bootstrap import topics
from servioticy.domain.model import StreamRef
from servioticy.domain.records import read_emitted
from servioticy.settings import Settings


class Faults(NamedTuple):
    """Updates of all streams that are not as they should be."""

    missing: int
    repeated: int
    disordered: int


def emitted(settings: Settings, streams: Iterable[StreamRef]) -> dict[StreamRef, list[int]]:
    """Return the timestamps of all that was emitted of these streams, in order."""
    found: dict[StreamRef, list[int]] = {each: [] for each in streams}
    for _at, value in hops.stamped(settings, topics(settings).emitted) if found else ():
        record = read_emitted(value)
        if record is not None:
            ref = StreamRef(record.service_object, record.stream)
            if ref in found:
                found[ref].append(record.timestamp)
    return found


def faults(found: Mapping[StreamRef, Sequence[int]], expected: Collection[int]) -> Faults:
    """Compare with the timestamps that each stream should have: once each, in order.

    What lies outside of these may be there or not.
    """
    wanted = set(expected)
    missing = repeated = disordered = 0
    for came in found.values():
        counted = [each for each in came if each in wanted]
        missing += len(wanted.difference(counted))
        repeated += len(counted) - len(set(counted))
        disordered += sum(after < before for before, after in pairwise(counted))
    return Faults(missing, repeated, disordered)
