"""What a hostile tenant costs an innocent one: a line for every attack we know of.

Start at `measure.py`; the attacks are in `stopping.py`, `taking.py`, `crowding.py`,
`brokering.py`, `leaving.py` and `evaluating.py`, and what comes without any in `resting.py`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.attacks.arrivals import Waits, faults
from benchmarks.attacks.catalogue import ATTACKS
from benchmarks.attacks.measure import Measured, measure
from servioticy.settings import Settings

HEADER = (
    "attack | innocent before, p50 p99 max ms | made ready | during | p99, times before | lost | "
    "turned away | slowest change | as before after | memory at most, MB | processor, s | "
    "machine late | what the attacker got"
)


def run(settings: Settings, arguments: Sequence[str]) -> int:
    """Print a line for every attack; 1 where one of them took something from the innocent."""
    parser = argparse.ArgumentParser("servioticy bench attacks")
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), metavar="ID", default=[])
    parser.add_argument("--seconds", type=float, default=15.0, help="of each attack")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="keep the programs' logs there")
    parser.add_argument(
        "--elsewhere",
        action="store_true",
        help="the attacker takes only the time that nobody else wants, as if it ran on another "
        "machine",
    )
    options = parser.parse_args(arguments)
    print(HEADER, flush=True)
    succeeded = []
    for name in options.only or ATTACKS:
        attack = ATTACKS[name]
        sys.stderr.write(f"{name}: {attack.what}\n")
        logs = options.logs and options.logs / name
        yields = options.elsewhere and not attack.is_control
        measured = measure(settings, attack, options.seconds, logs, yields=yields)
        print(line(name, measured), flush=True)
        found = faults(measured.suffered)
        succeeded += [name] if found else []
        sys.stderr.write(_remarks(measured, found))
    if succeeded:
        print(f"not held: {' '.join(succeeded)}")
    return 1 if succeeded else 0


def line(name: str, measured: Measured) -> str:
    """Return one row of the table."""
    suffered = measured.suffered
    after = suffered.recovered
    cells = (
        name,
        _waits(suffered.before),
        _waits(suffered.made_ready),
        _waits(suffered.during),
        f"{suffered.times:.1f}",
        f"{suffered.lost} of {measured.updates}",
        str(suffered.turned_away),
        f"{measured.longest_change:.1f} s",
        "never" if after is None else f"{after:.1f} s",
        _counts({part: round(peak) for part, peak in measured.peaks.items()}),
        ", ".join(f"{name} {seconds:.1f}" for name, seconds in sorted(measured.used.items())),
        " ".join(f"{1000 * seconds:.0f}" for seconds in measured.late),
        _counts(measured.got),
    )
    return " | ".join(cells)


def _remarks(measured: Measured, found: Sequence[str]) -> str:
    """For whoever watches: the verdict, the innocent's answers, what the logs complain of."""
    refused = Counter({k: n for k, n in measured.answers.items() if k != "202"})
    remarks = [f"  {'; '.join(found) or 'held'}"]
    if refused:
        remarks.append(f"  answers to the innocent: {_counts(refused)}")
    if measured.reopened:
        remarks.append(f"  its socket was opened again {measured.reopened} times")
    remarks += [f"  log {event}: {n}" for event, n in measured.complaints.most_common(10)]
    return "\n".join(remarks) + "\n"


def _waits(waits: Waits) -> str:
    return f"{1000 * waits.p50:.0f} {1000 * waits.p99:.0f} {1000 * waits.longest:.0f}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "nothing"
