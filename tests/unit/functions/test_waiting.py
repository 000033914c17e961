"""Who waits costs little, and has somebody at hand who is loaded already."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from functions import __main__ as program
from functions.__main__ import Stopped, Waiting

WORKS = """
import sys
from pathlib import Path
is_spare = sys.argv[2:] == ["--spare"]
if not is_spare or sys.stdin.buffer.read(1):
    with Path(sys.argv[1]).open("a") as said:
        said.write("spare\\n" if is_spare else "new\\n")
"""


class Atoms:
    """Something is due as often as it is said; then it is enough."""

    def __init__(self, *due: int | None) -> None:
        self.due_now = list(due)
        self.heard_for: list[float] = []
        self.when_heard: Callable[[], None] = lambda: None

    def due(self) -> int | None:
        if not self.due_now:
            raise Stopped
        return self.due_now.pop(0)

    def heard(self, seconds: float) -> None:
        self.heard_for.append(seconds)
        self.when_heard()


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "said"
    monkeypatch.setattr(program, "COMMAND", (sys.executable, "-c", WORKS, str(found)))
    return found


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, a spare ends by itself."""
    monkeypatch.setattr(program, "SPARE_SECONDS", 120.0)


def run(atoms: Atoms, **more: Any) -> Waiting:
    waiting = Waiting(atoms, lambda: 1.0, **more)  # type: ignore[arg-type]
    with pytest.raises(Stopped):
        waiting.run()
    waiting.end()
    return waiting


def test_what_is_due_is_worked_on_and_what_is_not_is_waited_for(said: Path) -> None:
    atoms = Atoms(1_000, 1_500, None)
    waiting = run(atoms)

    assert said.read_text() == "new\n"
    assert waiting.starts == 1
    assert atoms.heard_for == [0.0, 0.5, program.LISTEN_SECONDS]


def test_a_spare_is_there_while_nothing_waits_and_takes_what_comes(said: Path) -> None:
    atoms = Atoms(None, 1_000, None, 1_000)
    run(atoms, keeps_spare=True)

    assert said.read_text() == "spare\nspare\n"


def test_where_the_spare_has_died_another_one_works(said: Path) -> None:
    atoms = Atoms(None, 1_000)
    waiting = Waiting(atoms, lambda: 1.0, keeps_spare=True)  # type: ignore[arg-type]

    def die() -> None:
        if waiting._spare is not None:
            waiting._spare.kill()
            waiting._spare.wait()

    atoms.when_heard = die
    with pytest.raises(Stopped):
        waiting.run()
    waiting.end()

    assert said.read_text() == "new\n"


def test_a_spare_ends_with_who_keeps_it(said: Path) -> None:
    """As where that one is killed: the pipe is closed, and the spare reads its end."""
    waiting = run(Atoms(None), keeps_spare=True)

    assert waiting._spare is not None
    assert waiting._spare.returncode == 0
    assert not said.exists()


def test_who_works_and_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who stops us does not wait for what a receiver holds up."""
    deaf = "import signal, sys, time; signal.signal(15, signal.SIG_IGN); print(flush=True)"
    monkeypatch.setattr(program, "END_SECONDS", 0.1)
    waiting = Waiting(Atoms())  # type: ignore[arg-type]
    command = (sys.executable, "-c", f"{deaf}; time.sleep(600)")
    waiting.process = subprocess.Popen(command, stdout=subprocess.PIPE)
    with waiting.process as process:
        assert process.stdout is not None
        process.stdout.readline()
        waiting.end()

    assert process.returncode == -signal.SIGKILL
