"""How long a start takes, and what the platform needs when nothing happens.

Cold: an empty data folder. Warm: the same folder again. Each to the first derived update
that a reader gets back.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence

from benchmarks import ground, processes
from command.platform import Platform
from servioticy.embedded import tcp_ports as ports
from servioticy.settings import Settings, changed

IDLE_SECONDS = 20.0


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print seconds of both starts, then idle memory and processor use of each program."""
    del arguments
    with tempfile.TemporaryDirectory(prefix="servioticy-bench-") as folder:
        own = changed(settings, data=folder, api_port=ports.free(), live_port=ports.free())
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
    update = {"channels": {"v": {"current-value": 1}}, "lastUpdate": 1}
    with ground.client(settings, ground.token(settings)) as client:
        service_object = client.create(ground.chain(1))
        client.put(service_object, "s0", update)
        while client.last_timestamp(service_object, "s1") is None:
            time.sleep(0.01)


def _idle(programs: dict[str, int]) -> None:
    trees = {name: processes.tree(pid) for name, pid in programs.items()}
    before = {name: sum(map(processes.processor_seconds, tree)) for name, tree in trees.items()}
    time.sleep(IDLE_SECONDS)
    total = 0.0
    for name, tree in trees.items():
        used = sum(map(processes.processor_seconds, tree)) - before[name]
        memory = sum(map(processes.memory_megabytes, tree))
        total += memory
        share = 100 * used / IDLE_SECONDS
        print(f"idle {name}: {memory:.0f} MB, {share:.1f} % of a core, {len(tree)} processes")
    print(f"idle in all: {total:.0f} MB (proportional set size)")
