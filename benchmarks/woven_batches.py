"""What being woven adds to a call about a batch, where one sequence in a hundred is measured.

`python -m benchmarks.woven_batches` tells that alone, as JSON: two versions can take turns.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from monitoring.configuration import Aspect
from monitoring.outbox import Outbox
from monitoring.sequences import Maker, fresh, fresh_step
from monitoring.weaving.weaver import Weaver
from servioticy.domain.traces import written

SIZES = (1, 10, 100)
UPDATES = 40_000
"""Of a kind. None comes twice: contexts are new to each batch, as they are to the pipeline."""
MOST_BATCHES = 4_000
STAGES = 4
"""Calls within a call, all about the same batch."""
SAMPLE = 0.01


class Update(NamedTuple):
    """As much of one as is looked at."""

    trace: str


def run() -> dict[str, float]:
    """Return the microseconds that being woven adds to a call, by what it is about."""
    outbox, weaver = Outbox(), Weaver("bench")
    aspects = [
        Aspect(f"{__name__}.{each}", sequence="updates.*.trace", sample=SAMPLE)
        for each in ("batch", "stage")
    ]
    found = {}
    try:
        for size in SIZES:
            for kind in ("all have contexts", "the sampled have"):
                batches = _batches(size, kind)
                weaver.weave([], outbox)
                without = _seconds(batches, outbox)
                weaver.weave(aspects, outbox)
                spent = _seconds(batches, outbox) - without
                found[f"{size}, {kind}"] = 1e6 * spent / len(batches) / (1 + STAGES)
    finally:
        weaver.unweave()
    return found


def batch(updates: Sequence[Update]) -> None:
    """Call each stage with it."""
    for _ in range(STAGES):
        stage(updates)


def stage(updates: Sequence[Update]) -> int:
    """Do next to nothing."""
    return len(updates)


def _batches(size: int, kind: str) -> list[list[Update]]:
    """Where updates come without contexts, those that would be sampled are given one."""
    random.seed(size)
    make = Maker(SAMPLE) if kind == "the sampled have" else _context
    count = min(MOST_BATCHES, UPDATES // size)
    return [[Update(make()) for _ in range(size)] for _ in range(count)]


def _context() -> str:
    return written(fresh(), fresh_step(), 1)


def _seconds(batches: Sequence[Sequence[Update]], outbox: Outbox) -> float:
    spent = 0.0
    for start in range(0, len(batches), 20):
        some = batches[start : start + 20]
        began = time.thread_time()
        for each in some:
            batch(each)
        spent += time.thread_time() - began
        while outbox.take(1_000):  # what publishes does it in a thread of its own
            pass
    return spent


if __name__ == "__main__":
    print(msgspec.json.encode(run()).decode())
