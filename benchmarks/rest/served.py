"""The API program alone, on a Postgres and a broker of its own, and what each of them uses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ground
from benchmarks.processes import memory_megabytes, processor_seconds, tree
from command.platform import answers
from servioticy.embedded import tcp_ports as ports
from servioticy.settings import Settings, changed, to_environment
from servioticy.supervisor.program import Program
from servioticy.supervisor.supervisor import Supervisor

TICKS = 100.0
"""Of the kernel's clock in a second, on every Linux of today."""
KAFKA_CLIENT = "rdk:"
"""How the threads of librdkafka are called."""


@dataclass(frozen=True, slots=True)
class Served:
    """Where it is, a token, and the processes."""

    settings: Settings
    token: str
    pids: dict[str, int]

    def used(self) -> dict[str, float]:
        """Return the seconds of processor time of each layer so far."""
        client = sum(_threads(self.pids["api"], KAFKA_CLIENT))
        found = {
            name: sum(processor_seconds(each) for each in tree(pid))
            for name, pid in self.pids.items()
        }
        return {
            "api: Python": found["api"] - client,
            "api: Kafka's client": client,
            "Postgres": found["postgres"],
            "Kafka": found["kafka"],
        }

    def memory(self) -> float:
        """Return the megabytes of the API's process."""
        return memory_megabytes(self.pids["api"])


def _threads(pid: int, name: str) -> Iterator[float]:
    """Yield the seconds of processor time of the threads whose name begins so."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        command, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(")")
        if command.startswith(name):
            fields = rest.split()
            yield (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def served(settings: Settings) -> Iterator[Served]:
    """The API program, from when it answers."""
    with ground.stores(settings) as stores:
        own = changed(stores.settings, api_port=ports.free(), api_metrics_port=0)
        port = own.api.port
        program = Program(
            "api",
            [sys.executable, "-P", "-m", "api"],
            to_environment(own),
            lambda: answers(own.host, port, "/private/health"),
        )
        supervisor = Supervisor([program], stores.folder)
        try:
            supervisor.start()
            pids = {**stores.pids, **supervisor.pids()}
            yield Served(own, ground.token(own), pids)
        finally:
            supervisor.stop()
