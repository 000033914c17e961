"""Programs that come and go while a supervisor runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from process_walks import alive
from supervised_programs import STUBBORN_FAMILY, Run, a_program, running

from servioticy.embedded.folder import read_run
from servioticy.supervisor import supervisor
from servioticy.supervisor.program import Program

__all__ = ["running"]


class Others:
    """What is to run beside, and is asked for all the time."""

    def __init__(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(supervisor, "FIND_SECONDS", 0.0)
        self.programs: list[Program] = []
        self.run = run
        run.supervisor._find_others = lambda: list(self.programs)
        run.supervisor.start()

    def pid(self, name: str) -> int:
        self.run.until(lambda: name in self.run.supervisor.pids())
        return self.run.supervisor.pids()[name]


@pytest.fixture
def others(running: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> Others:
    return Others(running(a_program("one")), monkeypatch)


def test_one_that_comes_is_started_and_one_that_goes_is_stopped(others: Others) -> None:
    others.programs = [a_program("beside")]
    pid = others.pid("beside")
    others.programs = []
    others.run.until(lambda: others.run.told("stopped") == ["beside"])

    assert not alive(pid)
    assert list(others.run.supervisor.pids()) == ["one"]
    assert list((read_run(others.run.folder.path) or {})["pids"]) == ["one"]


def test_one_that_is_killed_is_started_again(others: Others) -> None:
    others.programs = [a_program("beside")]
    pid = others.pid("beside")
    os.kill(pid, signal.SIGKILL)
    others.run.until(lambda: others.run.told("exited") == ["beside"])

    assert others.pid("beside") != pid


def test_one_with_another_command_takes_its_place(others: Others) -> None:
    """The former has ended before: both might want the same port."""
    others.programs = [a_program("beside")]
    pid = others.pid("beside")
    others.programs = [a_program("beside", "import time; time.sleep(601)")]
    others.run.until(lambda: "beside" not in others.run.supervisor.pids())
    others.run.until(lambda: others.run.told("stopped") == ["beside"])

    assert others.pid("beside") != pid
    assert not alive(pid)


def test_nobody_waits_for_one_that_does_not_end(others: Others, tmp_path: Path) -> None:
    """It has its time; what is to run is looked after meanwhile, and it is killed in the end."""
    note = tmp_path / "child"
    stubborn = a_program("beside", STUBBORN_FAMILY, str(note), stop_seconds=600.0)
    others.programs = [stubborn]
    others.run.until(lambda: note.exists() and note.read_text())
    others.programs = []
    others.run.until(lambda: others.run.told("stopping") == ["beside"])
    first = others.pid("one")
    os.kill(first, signal.SIGKILL)
    others.run.until(lambda: others.run.told("ready").count("one") == 2)
    assert others.run.told("stopped") == []
    others.run.supervisor.ask_to_stop()
    others.run.supervisor.ask_to_stop()
    others.run.supervisor.stop()

    assert others.run.told("stopped") == ["beside", "one"]
    assert not alive(int(note.read_text()))


def test_what_cannot_be_found_changes_nothing(others: Others) -> None:
    others.programs = [a_program("beside")]
    pid = others.pid("beside")

    def fails() -> list[Program]:
        raise PermissionError

    others.run.supervisor._find_others = fails
    others.run.supervisor.tick()

    assert others.run.supervisor.pids()["beside"] == pid
