"""What woven monitoring costs: a call, an update, to weave, and what each publisher holds.

A task of the pipeline takes short backlogs over and over, in turn with all steps of the pipeline
woven, with one sequence in a hundred measured, and with nothing woven, so that whatever else the
machine does meets all three: each is compared with the round without that is its neighbour. And so
does a closed loop over a whole platform.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

from benchmarks import ground, publishing, woven_batches, woven_loop
from benchmarks.stages import Bench, real
from monitoring.configuration import Aspect, Publish
from monitoring.outbox import Outbox
from monitoring.publishers.every import Every, Surroundings
from monitoring.publishers.sums import Sums
from monitoring.sequences import Maker
from monitoring.weaving.recorder import Recorder
from monitoring.weaving.weaver import Weaver
from servioticy.domain.traces import MAKING
from servioticy.settings import Settings

STEPS = ("pipeline.*", "pipeline.stages.*", "storage.store", "sandbox.frame")
CALLS = 200_000
NOTED_ROUNDS = 20
"""In which advice is timed by itself, which costs time, too: none of those that are compared."""
MODES = {"off": None, "all woven": 1.0, "1 % sampled": 0.01}
"""Each with the part of the sequences that is measured."""


class Round(NamedTuple):
    """One backlog: processor and clock of an update in microseconds, and the slowest batches."""

    processor: float
    clock: float
    p99: float
    measured: float
    """measurements"""


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print nanoseconds a call, then medians over rounds, and by how much each is above off."""
    parser = argparse.ArgumentParser("servioticy bench monitoring")
    parser.add_argument("--updates", type=int, default=400, help="of a round")
    parser.add_argument("--rounds", type=int, default=100, help="of each kind, in turn")
    parser.add_argument("--devices", type=int, default=100)
    parser.add_argument("--batch", type=int, default=100, help="updates taken at once")
    parser.add_argument("--measurements", type=int, default=200_000, help="of each publisher")
    parser.add_argument("--turns", type=int, default=5, help="of a whole platform; 0: none")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each turn")
    parser.add_argument("--connections", type=int, default=8, help="and devices, of a turn")
    parser.set_defaults(no_accounts=False, no_security=False)
    options = parser.parse_args(arguments)
    _calls()
    for about, each in woven_batches.run().items():
        print(f"a call about {about}, 1 %: {each:.1f} us", flush=True)
    publishing.weaving(STEPS)
    publishing.publishing(settings, options.measurements)
    with real(settings, options) as bench:
        rows = bench.rows(options.devices, 1)
        bench.task.take(rows)
        found: dict[str, list[Round]] = {name: [] for name in MODES}
        names = [*MODES]
        for number in range(options.rounds + 1):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                with published(MODES[name]) as publish:
                    taken = _round(bench, options.updates, options.batch, publish)
                if number:  # the first warms up
                    found[name].append(taken)
        _tell(found, options)
        for name, sample in MODES.items():
            if sample is not None:
                spent = 1e6 * _advice(bench, sample, options)
                part = spent / _median([each.processor for each in found["off"]])
                print(f"{name:14s}{spent:14.2f} us an update in advice, {100 * part:.1f} %")
    if options.turns:
        woven_loop.run(settings, MODES, options.turns, options.seconds, options.connections)


@contextmanager
def published(sample: float | None) -> Iterator[Callable[[], int]]:
    """All steps woven meanwhile; yields what publishes to a file what waits, and counts it.

    A program does that in a thread, once a second, which few rounds would meet: here each has its
    own. Updates have contexts of the traces that are sampled.
    """
    outbox, weaver = Outbox(), Weaver("bench")
    with TemporaryDirectory() as folder:
        every = Every(Publish(), Surroundings(Path(folder) / "measurements.ndjson", Sums()))

        def publish() -> int:
            count = 0
            while some := outbox.take(1_000):
                every.publish(some)
                count += len(some)
            return count

        if sample is not None:
            weaver.weave([Aspect(each, sample=sample) for each in STEPS], outbox)
            MAKING.make = Maker(sample)
        try:
            yield publish
        finally:
            MAKING.make = None
            weaver.unweave()


def _round(bench: Bench, updates: int, batch: int, publish: Callable[[], int]) -> Round:
    rows = bench.more([*range(updates)])
    waits = []
    began, processor = time.perf_counter(), time.process_time()
    for start in range(0, len(rows), batch):
        at = time.perf_counter()
        bench.take(rows[start : start + batch], batch)
        waits.append(1e3 * (time.perf_counter() - at))
    count = publish()
    processor, clock = time.process_time() - processor, time.perf_counter() - began
    p99 = ground.percentile(waits, 0.99)
    return Round(1e6 * processor / updates, 1e6 * clock / updates, p99, count)


def _advice(bench: Bench, sample: float, options: argparse.Namespace) -> float:
    """Return the seconds that advice takes of an update, by the time of whichever thread.

    To publish is not in it, nor are the calls to advice. Rounds differ by more than all that; of
    each advice the slowest tenth is left out, which others on the machine have made slow.
    """
    with noted() as spent, published(sample) as publish:
        for _ in range(NOTED_ROUNDS):
            _round(bench, options.updates, options.batch, publish)
    updates: int = options.updates
    return sum(map(_usual, spent.values())) / (NOTED_ROUNDS * updates)


@contextmanager
def noted() -> Iterator[dict[Any, list[float]]]:
    """Note the seconds that each call of each advice takes; of what is woven meanwhile."""
    spent: dict[Any, list[float]] = defaultdict(list)

    def timed(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(recorder: Recorder, *arguments: Any) -> Any:
            began = time.thread_time()
            try:
                return real(recorder, *arguments)
            finally:
                spent[recorder, real].append(time.thread_time() - began)

        return call

    with patch.multiple(Recorder, enter=timed(Recorder.enter), leave=timed(Recorder.leave)):
        yield spent


def _usual(values: Sequence[float]) -> float:
    """Their sum, if the slowest tenth were as the others are."""
    kept = sorted(values)[: max(1, len(values) * 9 // 10)]
    return sum(kept) / len(kept) * len(values)


def _tell(found: dict[str, list[Round]], options: argparse.Namespace) -> None:
    print(f"{options.rounds} rounds of {options.updates} updates, {options.batch} at once")
    print(f"{'':14s}{'processor us':>14s}{'clock us':>12s}{'p99 of a batch ms':>20s}")
    for name, rounds in found.items():
        middle = Round(*map(_median, zip(*rounds, strict=True)))
        count = sum(each.measured for each in rounds)
        print(
            f"{name:14s}{middle.processor:14.1f}{middle.clock:12.1f}{middle.p99:20.2f}   "
            f"{_above(rounds, found['off'])}, {count:,.0f} measurements"
        )


def _above(rounds: Sequence[Round], off: Sequence[Round]) -> str:
    """Return how much more of the processor each took than its neighbour: middle and quartiles."""
    each = [100 * (a.processor / b.processor - 1) for a, b in zip(rounds, off, strict=True)]
    low, middle, high = (ground.percentile(each, part) for part in (0.25, 0.5, 0.75))
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"


def _median(values: Sequence[float]) -> float:
    return ground.percentile(values, 0.5)


def _calls() -> None:
    """Print what a call of an empty function takes of the processor, in this order."""
    weaver, outbox = Weaver("bench"), Outbox(4_096)
    place = f"{__name__}._nothing"
    aspects = {
        "never woven": None,
        "runtime": Aspect(place),
        "runtime, 1 %": Aspect(place, sample=0.01),
        "count": Aspect(place, measures=("count",)),
        "profile": Aspect(place, measures=("profile",)),
        "unwoven": None,
    }
    code = _nothing.__code__
    for name, aspect in aspects.items():
        weaver.weave([] if aspect is None else [aspect], outbox)
        calls = CALLS // 100 if name == "profile" else CALLS
        best = min(_seconds(_nothing, calls) for _ in range(5))
        print(f"a call, {name:14s} {1e9 * best / calls:8.0f} ns", flush=True)
    print(f"its code is what it was: {_nothing.__code__ is code}")


def _nothing(number: int) -> int:
    return number


def _seconds(call: Callable[[int], int], count: int) -> float:
    began = time.thread_time()
    for number in range(count):
        call(number)
    return time.thread_time() - began
