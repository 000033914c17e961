"""What neighbours cost innocent tenants that send all the time: p50 and p99 in one run.

Start at `measure.py`; the neighbours are in `kinds.py`. Unlike an attack, a neighbour breaks
nothing: it uses what it may, or wants more than it may.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.attacks.arrivals import Waits
from benchmarks.neighbours.kinds import NEIGHBOURS
from benchmarks.neighbours.measure import PHASES, Beside, measure
from servioticy.settings import Settings

RISE = 20.0
"""Per cent that the innocent's p99 may rise beside a neighbour."""
HEADER = (
    f"neighbour | innocent's p50 p99 ms: {' | '.join(PHASES)} | during to before | "
    "lost | refused | what the neighbour got | load"
)


def run(settings: Settings, arguments: Sequence[str]) -> int:
    """Print a line for every neighbour; 1 where one of them took something from the innocent."""
    parser = argparse.ArgumentParser("servioticy bench neighbours")
    parser.add_argument("--only", nargs="+", choices=list(NEIGHBOURS), metavar="NAME", default=[])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each phase")
    parser.add_argument("--rise", type=float, default=RISE, help="per cent that p99 may rise")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="keep the programs' logs there")
    parser.add_argument(
        "--elsewhere",
        action="store_true",
        help="the neighbour's client takes only the time that nobody else wants, as if it ran on "
        "another machine",
    )
    parser.add_argument(
        "--platform", type=Path, metavar="DIR", help="measure that of another checkout"
    )
    options = parser.parse_args(arguments)
    print(HEADER, flush=True)
    failed = []
    for name in options.only or NEIGHBOURS:
        neighbour = NEIGHBOURS[name]
        sys.stderr.write(f"{name}: {neighbour.does.what}\n")
        logs = options.logs and options.logs / name
        beside = measure(
            settings,
            neighbour,
            options.seconds,
            logs,
            yields=options.elsewhere,
            checkout=options.platform,
        )
        print(line(name, beside), flush=True)
        found = beside.faults(options.rise / 100)
        failed += [name] if found else []
        sys.stderr.write(f"  {'; '.join(found) or 'held'}\n")
    if failed:
        print(f"not held: {' '.join(failed)}")
    return 1 if failed else 0


def line(name: str, beside: Beside) -> str:
    """Return one row of the table."""
    cells = (
        name,
        *(_waits(beside.waits[phase]) for phase in PHASES),
        f"{1 + beside.rise:.2f}",
        f"{beside.lost} of {beside.updates}",
        str(beside.refused),
        _counts(beside.got),
        f"{os.getloadavg()[0]:.1f}",
    )
    return " | ".join(cells)


def _waits(waits: Waits) -> str:
    return f"{1000 * waits.p50:.1f} {1000 * waits.p99:.1f}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "nothing"
