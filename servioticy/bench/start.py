"""How long a start takes, and what the platform needs when nothing happens.

Cold: an empty data folder. Warm: the same folder again. Each to the first derived update
that a reader gets back.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from servioticy.bench import ground
from servioticy.embedded import ports
from servioticy.platform import Platform
from servioticy.settings import Settings

IDLE_SECONDS = 20.0


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print seconds of both starts, then idle memory and processor use of each program."""
    del arguments
    with tempfile.TemporaryDirectory(prefix="servioticy-bench-") as folder:
        own = replace(settings, data=folder, api_port=ports.free(), live_port=ports.free())
        for name in ("cold", "warm"):
            began = time.perf_counter()
            platform = Platform(own)
            try:
                platform.supervisor.start()
                ready = time.perf_counter() - began
                _first_derived(platform.settings)
                derived = time.perf_counter() - began
                print(f"{name} start: ready {ready:.1f} s, first derived update {derived:.1f} s")
                if name == "warm":
                    _idle(platform.supervisor.pids())
            finally:
                platform.close()


def _first_derived(settings: Settings) -> None:
    client = ground.Client(settings, ground.token(settings))
    service_object = client.create(ground.chain(1))
    client.put(f"/{service_object}/streams/s0", 1, 1)
    while client.request("GET", f"/{service_object}/streams/s1/lastUpdate")[0] != 200:
        time.sleep(0.01)


def _idle(programs: dict[str, int]) -> None:
    trees = {name: _tree(pid) for name, pid in programs.items()}
    before = {name: sum(map(_processor_seconds, tree)) for name, tree in trees.items()}
    time.sleep(IDLE_SECONDS)
    total = 0.0
    for name, tree in trees.items():
        used = sum(map(_processor_seconds, tree)) - before[name]
        memory = sum(map(_memory_megabytes, tree))
        total += memory
        share = 100 * used / IDLE_SECONDS
        print(f"idle {name}: {memory:.0f} MB, {share:.1f} % of a core, {len(tree)} processes")
    print(f"idle in all: {total:.0f} MB (proportional set size)")


def _tree(pid: int) -> list[int]:
    """The process and all below it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += parents.get(found[-1], [])
    return found


def _processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_megabytes(pid: int) -> float:
    """Memory with shared pages counted in parts, so that a sum over processes is honest."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)
