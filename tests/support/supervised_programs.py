"""Programs for a supervisor to run."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from servioticy.embedded.folder import DataFolder
from servioticy.supervisor.program import Event, Program
from servioticy.supervisor.supervisor import Supervisor

SLEEP = "import time; time.sleep(600)"


# A parent deaf to polite signals, with a child that only a signal to the whole group reaches.
STUBBORN_FAMILY = """
    import signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open(sys.argv[1], "w").write(str(child.pid))
    time.sleep(600)
"""


def a_program(name: str = "one", code: str = SLEEP, *arguments: str, **more: Any) -> Program:
    command = [sys.executable, "-S", "-c", textwrap.dedent(code), *arguments]
    return Program(name=name, command=command, environment={}, **more)


class Run:
    """A supervisor with what it told."""

    def __init__(self, data: Path, *programs: Program) -> None:
        self.events: list[Event] = []
        self.folder = DataFolder(data)
        self.supervisor = Supervisor(programs, self.folder, self.events.append, {"api": 1})

    def told(self, kind: str) -> list[str]:
        return [event.program for event in self.events if event.kind == kind]

    def until(self, condition: Callable[[], Any]) -> None:
        until(lambda: self.supervisor.tick() or condition())

    def close(self) -> None:
        self.supervisor.stop()
        self.folder.release()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def make(*programs: Program) -> Run:
        runs.append(Run(tmp_path / "data", *programs))
        return runs[-1]

    yield make
    for run in runs:
        run.close()
