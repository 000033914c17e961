"""A supervisor as a process: what a signal or a kill leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from process_walks import alive
from supervised_programs import STUBBORN_FAMILY, a_program, running
from waiting import until

from servioticy.embedded.folder import DataFolder
from servioticy.errors import SetupError

__all__ = ["running"]


PLATFORM = """
    import sys
    from pathlib import Path
    from servioticy.embedded.folder import DataFolder
    from servioticy.supervisor.program import Program
    from servioticy.supervisor.supervisor import Supervisor
    data, note, code = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    family = Program("family", [sys.executable, "-S", "-c", code, str(note)], {},
                     ready=lambda: note.exists() and note.read_text() != "", stop_seconds=0.5)
    plain = Program("plain", [sys.executable, "-S", "-c", "import time; time.sleep(600)"], {})
    folder = DataFolder(data)
    tell = lambda event: print(event.kind, event.program, flush=True)
    Supervisor([family, plain], folder, tell).run_forever()
    folder.release()
"""


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A supervisor in a process of its own, and the pids of all it runs."""
    data, note = tmp_path / "data", tmp_path / "child"
    family = textwrap.dedent(STUBBORN_FAMILY)
    command = [sys.executable, "-c", textwrap.dedent(PLATFORM), str(data), str(note), family]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        try:
            for line in started.stdout:
                if line == "ready plain\n":
                    break
            pids = json.loads((data / "run.json").read_text())["pids"]
            yield started, [*pids.values(), int(note.read_text())]
        finally:
            started.kill()


@pytest.mark.slow
def test_no_program_outlives_a_killed_supervisor(platform, tmp_path) -> None:
    """kill -9 leaves no time to tidy up; even so nothing may be left, and the folder is free."""
    started, pids = platform
    assert all(map(alive, pids))

    started.kill()
    started.wait()
    again = DataFolder(tmp_path / "data")

    until(lambda: not any(map(alive, pids)))
    again.release()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything(platform, tmp_path, number) -> None:
    started, pids = platform

    started.send_signal(number)
    output = started.stdout.read()

    assert started.wait(timeout=20) == 0
    assert output.splitlines()[-1] == "stopped family"
    assert not any(map(alive, pids))
    assert not (tmp_path / "data" / "run.json").exists()


def test_programs_started_together_do_not_wait_for_each_other(running) -> None:
    """The slow JVMs may warm up side by side."""
    run = running(a_program("one", together=True), a_program("two"), a_program("three"))

    run.supervisor.start()

    kinds = [(event.program, event.kind) for event in run.events]
    assert kinds[:2] == [("one", "starting"), ("two", "starting")]
    assert kinds[-2:] == [("three", "starting"), ("three", "ready")]


def test_a_restart_that_cannot_be_prepared_is_tried_again(running) -> None:
    """A part that is still on its way out must not take the platform down."""
    refusals = iter([False, True, False])

    def before() -> None:
        if next(refusals):
            raise SetupError("the last one is still there")

    run = running(a_program(before=before))
    run.supervisor.start()

    os.kill(run.supervisor.pids()["one"], signal.SIGKILL)
    run.until(lambda: run.told("ready") == ["one", "one"])

    assert "still there" in [event.detail for event in run.events if event.kind == "exited"][1]
