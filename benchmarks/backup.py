"""How long a back-up of a running platform takes, what others notice of it, and its restore.

An innocent tenant sends ten updates a second through two composites, opens sockets and changes a
document each second. What is stored is put into Postgres directly; --updates says how much.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import ground
from benchmarks.attacks import running
from benchmarks.attacks.arrivals import Waits, waits
from benchmarks.attacks.attacker import Place
from benchmarks.attacks.innocent import Innocent
from benchmarks.search import DOCUMENT, FILL
from servioticy.errors import ServioticyError
from servioticy.settings import Settings, changed, to_environment
from servioticy.storage.database import Database

PAUSE_SECONDS = 2.0
"""Between what is measured and what was done before it."""


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser("servioticy bench backup")
    parser.add_argument("--updates", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=3, help="back-ups one after the other")
    parser.add_argument("--seconds", type=float, default=20.0, help="before the first of them")
    parsed = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="servioticy-bench-") as folder:
        file = Path(folder) / "0"
        with running.platform(settings, None) as own:
            _measure(own, file.parent, parsed.updates, parsed.times, parsed.seconds)
        took = _command(changed(settings, data=f"{folder}/restored"), "restore", file)
        print(f"restored in {took:.1f} s, with a Postgres and a broker that were started for it")


def _measure(settings: Settings, folder: Path, updates: int, times: int, seconds: float) -> None:
    token = ground.token(settings)
    _fill(settings, token, updates)
    innocent = Innocent(Place(settings, token))
    innocent.start()
    time.sleep(PAUSE_SECONDS)
    began = time.perf_counter()
    time.sleep(seconds)
    spans = [("alone", began, time.perf_counter())]
    for number in range(times):
        file, began = folder / str(number), time.perf_counter()
        took = _command(settings, "backup", file)
        spans.append((f"back-up {took:.1f} s", began, time.perf_counter()))
        time.sleep(PAUSE_SECONDS)
    innocent.stop_sending()
    time.sleep(PAUSE_SECONDS)
    megabytes = (folder / "0").stat().st_size / 1e6
    print(f"{updates:,} updates stored, the file has {megabytes:.0f} MB")
    for name, start, end in spans:
        sent = [each for each in innocent.sent if start <= each.due < end]
        print(f"  {name:16} {_shown(waits(sent, time.perf_counter()))}")
    slowest = max(innocent.changes, default=0.0)
    print(f"  lost {innocent.missing()}, turned away {innocent.turned_away}, ", end="")
    print(f"slowest change of a document {slowest * 1000:.0f} ms")


def _fill(settings: Settings, token: str, updates: int) -> None:
    with ground.client(settings, token) as client:
        id_ = client.create(DOCUMENT)
    database = Database(settings.store.dsn)
    database.rows(FILL, {"rows": updates, "id": id_})
    database.rows("VACUUM ANALYZE stored_updates")
    database.close()


def _command(settings: Settings, name: str, file: Path) -> float:
    """Run it, and return how many seconds it took. Raises ServioticyError where it fails."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "command.cli", name, str(file)],
        env={**os.environ, **to_environment(settings)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ServioticyError(done.stderr.strip())
    return time.perf_counter() - began


def _shown(found: Waits) -> str:
    return (
        f"p50 {found.p50 * 1000:.1f} ms, p99 {found.p99 * 1000:.1f} ms, "
        f"longest {found.longest * 1000:.0f} ms"
    )
