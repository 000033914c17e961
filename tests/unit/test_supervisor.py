"""The supervisor, on small programs that do what real ones do on bad days."""

from __future__ import annotations

import os
import signal

import pytest
from process_walks import alive
from supervised_programs import STUBBORN_FAMILY, a_program, running
from waiting import until

from servioticy.embedded.folder import DataFolder, read_run
from servioticy.errors import SetupError, Unavailable
from servioticy.supervisor import rotation, supervisor
from servioticy.supervisor.program import Program
from servioticy.supervisor.supervisor import pause_before_restart

__all__ = ["running"]


def test_programs_start_in_order_each_when_the_one_before_is_ready(running, tmp_path) -> None:
    """The broker must be up before the pipeline asks it for offsets."""
    mark = tmp_path / "up"
    code = "import sys, time; open(sys.argv[1], 'w'); time.sleep(600)"
    run = running(a_program("one", code, str(mark), ready=mark.exists), a_program("two"))

    run.supervisor.start()

    told = [(event.program, event.kind) for event in run.events]
    assert told == [("one", "starting"), ("one", "ready"), ("two", "starting"), ("two", "ready")]


def test_programs_that_start_together_do_not_wait_for_each_other(running, tmp_path) -> None:
    """Java, Flask and asyncio all take their time; users should not wait for the sum."""
    mark = tmp_path / "up"
    code = "import sys, time; open(sys.argv[1], 'w'); time.sleep(600)"
    run = running(
        a_program("one", ready=mark.exists, together=True), a_program("two", code, str(mark))
    )

    run.supervisor.start()

    told = [(event.program, event.kind) for event in run.events]
    assert told[:2] == [("one", "starting"), ("two", "starting")]
    assert sorted(run.told("ready")) == ["one", "two"]


def test_what_comes_before_a_start_comes_before_each_start(running) -> None:
    called: list[int] = []
    run = running(a_program(before=lambda: called.append(1)))
    run.supervisor.start()

    os.kill(run.supervisor.pids()["one"], signal.SIGKILL)
    run.until(lambda: run.told("ready") == ["one", "one"])

    assert called == [1, 1]


def test_a_killed_program_is_restarted_at_once(running) -> None:
    run = running(a_program())
    run.supervisor.start()
    first = run.supervisor.pids()["one"]

    os.kill(first, signal.SIGKILL)
    run.until(lambda: run.told("ready") == ["one", "one"])

    assert run.supervisor.pids()["one"] != first
    assert "SIGKILL" in next(event.detail for event in run.events if event.kind == "exited")


def test_what_a_killed_program_left_is_killed_before_the_restart(running, tmp_path) -> None:
    """An orphaned worker would hold a port, or work beside its successor."""
    note = tmp_path / "child"
    ready = lambda: note.exists() and note.read_text() != ""  # noqa: E731
    run = running(a_program("one", STUBBORN_FAMILY, str(note), ready=ready))
    run.supervisor.start()
    orphan = int(note.read_text())

    os.kill(run.supervisor.pids()["one"], signal.SIGKILL)
    run.until(lambda: run.told("exited"))

    until(lambda: not alive(orphan))


def test_pauses_grow_and_end_at_five_seconds() -> None:
    """One crash costs nothing; a program that cannot start does not eat a core."""
    assert [pause_before_restart(failures) for failures in (1, 2, 3, 4)] == [0, 0.25, 0.5, 1.0]
    assert pause_before_restart(1000) == 5.0


def test_health_forgives_earlier_failures(running, monkeypatch) -> None:
    monkeypatch.setattr(supervisor, "HEALTHY_SECONDS", 0.0)
    run = running(a_program())
    run.supervisor.start()

    for restarts in (2, 3, 4):
        os.kill(run.supervisor.pids()["one"], signal.SIGKILL)
        run.until(lambda restarts=restarts: len(run.told("ready")) == restarts)

    assert run.supervisor._failures == {"one": 1}


def test_programs_stop_in_reverse_order(running) -> None:
    run = running(a_program("one"), a_program("two"), a_program("three"))
    run.supervisor.start()

    run.supervisor.stop()
    run.supervisor.stop()

    assert run.told("stopped") == ["three", "two", "one"]
    assert run.supervisor.pids() == {}


def test_a_program_deaf_to_its_stop_signal_is_killed_with_its_children(running, tmp_path) -> None:
    note = tmp_path / "child"
    ready = lambda: note.exists() and note.read_text() != ""  # noqa: E731
    run = running(a_program("one", STUBBORN_FAMILY, str(note), ready=ready, stop_seconds=0.1))
    run.supervisor.start()
    pids = [*run.supervisor.pids().values(), int(note.read_text())]

    run.supervisor.stop()

    until(lambda: not any(map(alive, pids)))


def test_a_program_that_dies_at_the_start_is_told_with_its_last_words(running) -> None:
    """The reason is in the log; nobody should have to look for it."""
    run = running(a_program("one"), a_program("two", "print('no such port'); raise SystemExit(3)"))
    with pytest.raises(
        Unavailable, match=r"(?s)two ended \(exit code 3\).*two\.log.*no such port"
    ):
        two_never_ready = run.supervisor._programs[1]
        object.__setattr__(two_never_ready, "ready", lambda: False)
        run.supervisor.start()

    assert run.told("stopped") == ["two", "one"]


def test_a_program_that_is_never_ready_is_told(running) -> None:
    run = running(a_program(ready=lambda: False, ready_seconds=0.1))
    with pytest.raises(Unavailable, match=r"one is not ready after 0\.1 s"):
        run.supervisor.start()


def test_a_command_that_is_not_there_is_told(running) -> None:
    run = running(Program("one", ["/no/such/program"], {}))
    with pytest.raises(Unavailable, match="one cannot be started"):
        run.supervisor.start()


def test_run_file_tells_the_processes_while_they_run(running) -> None:
    run = running(a_program())
    run.supervisor.start()
    facts = read_run(run.folder.path)

    assert facts == {
        "api": 1,
        "pid": os.getpid(),
        "pids": run.supervisor.pids(),
        "since": run.supervisor.since(),
    }
    assert run.folder.run_file.stat().st_mode & 0o777 == 0o600
    run.supervisor.stop()
    assert read_run(run.folder.path) is None


def test_two_platforms_cannot_share_a_data_folder(running, tmp_path) -> None:
    running(a_program())
    with pytest.raises(SetupError, match="already runs"):
        DataFolder(tmp_path / "data")


def test_a_large_log_is_put_aside_at_the_start(running, monkeypatch) -> None:
    monkeypatch.setattr(rotation, "LOG_LIMIT", 10)
    run = running(a_program())
    (run.folder.logs / "one.log").write_text("a long story of last time")

    run.supervisor.start()

    assert (run.folder.logs / "one.log.1").read_text() == " last time"
    assert "a long" not in (run.folder.logs / "one.log").read_text()


def test_a_killed_guard_is_replaced(running) -> None:
    run = running(a_program())
    run.supervisor.start()
    guard = run.supervisor._guard._process

    guard.kill()
    run.until(lambda: run.supervisor._guard._process is not guard)

    assert run.supervisor._guard._process.poll() is None
