"""A public stream and those who read it: what they cost whoever sends, and when they have it.

One tenant sends to a public stream and watches what it derives from it; others have a composite
over that stream each. Start at `measure.py`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.attacks import running
from benchmarks.attacks.arrivals import Waits
from benchmarks.border.measure import Beside, measure
from servioticy.settings import Settings

READERS = (0, 10, 1000)
HEADER = (
    "readers | provider's p50 p99 ms | readers' p50 p99 ms | all had it after s | "
    "missing, repeated, not in order | processor ms an update | load"
)


def run(settings: Settings, arguments: Sequence[str]) -> int:
    """Print a line for each number of readers; 1 where one of them did not get everything."""
    parser = argparse.ArgumentParser("servioticy bench border")
    parser.add_argument("--readers", type=int, nargs="+", default=READERS, metavar="NUMBER")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rate", type=float, default=10.0, help="updates a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each number of readers")
    parser.add_argument(
        "--within", type=float, default=600.0, help="seconds in which all readers have everything"
    )
    parser.add_argument("--logs", type=Path, metavar="DIR", help="keep the programs' logs there")
    parser.add_argument(
        "--platform", type=Path, metavar="DIR", help="measure that of another checkout"
    )
    options = parser.parse_args(arguments)
    print(HEADER, flush=True)
    faults = 0
    with running.platform(settings, options.logs, options.partitions, options.platform) as found:
        for number in options.readers:
            beside = measure(found, number, 1 / options.rate, options.seconds, options.within)
            print(line(number, beside), flush=True)
            faults += sum(beside.faults)
    return 1 if faults else 0


def line(readers: int, beside: Beside) -> str:
    """Return one row of the table."""
    told = beside.complete_seconds
    cells = (
        str(readers),
        _waits(beside.provider),
        _waits(beside.readers) if readers else "-",
        "never" if told is None else f"{told:.1f}",
        ", ".join(map(str, beside.faults)),
        _used(beside.used),
        f"{os.getloadavg()[0]:.1f}",
    )
    return " | ".join(cells)


def _waits(waits: Waits) -> str:
    return f"{1000 * waits.p50:.1f} {1000 * waits.p99:.1f}"


def _used(seconds: Mapping[str, float]) -> str:
    parts = ", ".join(f"{name} {1000 * each:.1f}" for name, each in sorted(seconds.items()))
    return f"{1000 * sum(seconds.values()):.1f} ({parts})"
