"""The closed loop, in turn with monitoring woven into all programs, with a part, and without."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from benchmarks import ground
from benchmarks.loop import Loop
from monitoring import status
from monitoring.configuration import file_of
from servioticy.errors import Unavailable
from servioticy.settings import Settings

EVERYTHING = (
    *("api.request", "ingest.*", "pipeline.*", "pipeline.stages.*", "program.*"),
    *("sandbox.frame", "storage.store", "delivery.*"),
)
"""All steps that have a name and that a process here has: there is no operator to call."""
SETTLE_SECONDS = 60.0
LOOK_SECONDS = 2.0
"""Each process looks at the file once a second: who has it to tell has told it by then."""


class Turn(NamedTuple):
    """One turn: what arrived a second, and how long it took, in ms."""

    arrived: float
    p50: float
    p99: float


def run(
    settings: Settings,
    modes: Mapping[str, float | None],
    rounds: int,
    seconds: float,
    devices: int,
) -> None:
    """Print medians over turns, and by how much they differ from those without."""
    found: dict[str, list[Turn]] = {name: [] for name in modes}
    with ground.platform(settings) as own, ExitStack() as stack:
        if file_of(own).exists():
            raise Unavailable(f"{file_of(own)} is in use: it would be measured without it, too")
        loop = Loop.of_platform(own, devices, stack)
        loop.warm()
        names = [*modes]
        for number in range(rounds):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                with woven(own, modes[name]):
                    each = loop.round(seconds)
                p50, p99 = (ground.percentile(each.waits, part) for part in (0.5, 0.99))
                found[name].append(Turn(each.arrived_a_second, p50, p99))
    off = _middle(found[next(iter(modes))])
    print(f"a whole platform, {devices} devices, {rounds} turns of {seconds:g} s each, medians")
    for name, turns in found.items():
        middle = _middle(turns)
        above = [f"{100 * (a / b - 1):+.1f} %" for a, b in zip(middle, off, strict=True)]
        print(
            f"{name:14s}{middle.arrived:10,.0f} a second{middle.p50:10.1f} ms p50"
            f"{middle.p99:10.1f} ms p99   {' '.join(above)}"
        )
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")


@contextmanager
def woven(settings: Settings, sample: float | None) -> Iterator[None]:
    """Have everything woven in all processes meanwhile. Raises Unavailable where it is not."""
    file = file_of(settings)
    try:
        _settle(settings, is_woven=False)  # else what was woven before would pass for this
        if sample is not None:
            file.write_text("\n".join(_aspects(sample)), encoding="utf-8")
            _settle(settings, is_woven=True)
        yield
    finally:
        file.unlink(missing_ok=True)


def _aspects(sample: float) -> list[str]:
    return [f'[[aspect]]\npointcut = "{each}"\nsample = {sample}\n' for each in EVERYTHING]


def _settle(settings: Settings, *, is_woven: bool) -> None:
    """Wait until all is woven, or nothing is. Raises Unavailable where that does not come."""
    until, before = time.monotonic() + SETTLE_SECONDS, -1
    while True:
        told = status.of(settings)
        count = len(told.processes)
        if (told.is_well if is_woven else not count) and count == before:
            return
        if time.monotonic() > until:
            raise Unavailable(f"not woven as it should be: {status.lines(told)}")
        before = count
        time.sleep(LOOK_SECONDS)


def _middle(turns: list[Turn]) -> Turn:
    return Turn(*(ground.percentile(each, 0.5) for each in zip(*turns, strict=True)))
