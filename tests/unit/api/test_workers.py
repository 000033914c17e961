"""Several API processes under one: they are replaced, and end with it."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from api import workers

SECONDS = 60.0
"""The longest a test waits for what has to happen."""

# Says which process it is, in a file; says so again when it is asked to end.
WORKER = """
import os, pathlib, signal, sys
from api.workers import inherited
listener = inherited()
assert listener is not None and listener.getsockname()[1]
noted = pathlib.Path(sys.argv[1]) / str(os.getpid())
def end(*_):
    noted.write_text("ended")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
noted.write_text("began")
while True:
    signal.pause()
"""
RUN = """
import socket, sys
from api import workers
workers.PAUSE_SECONDS = 0.02
worker, folder = sys.argv[1:]
listener = socket.create_server(("127.0.0.1", 0))
workers.Workers(listener, 2, [sys.executable, "-c", worker, folder]).run()
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", RUN, WORKER, str(tmp_path)])
    yield process
    process.kill()
    process.wait()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def noted(folder: Path, word: str) -> set[int]:
    return {int(each.name) for each in folder.iterdir() if each.read_text() == word}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_the_one_who_started_them(
    number: signal.Signals, running: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """In order, and it waits for them; asked twice it does nothing else."""
    until(lambda: len(noted(tmp_path, "began")) == 2)
    running.send_signal(number)
    running.send_signal(number)

    assert running.wait(SECONDS) == 0
    assert len(noted(tmp_path, "ended")) == 2


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(running: subprocess.Popen[bytes], tmp_path: Path) -> None:
    until(lambda: len(noted(tmp_path, "began")) == 2)
    dead = min(noted(tmp_path, "began"))
    os.kill(dead, signal.SIGKILL)
    until(lambda: len(noted(tmp_path, "began")) == 3)
    running.send_signal(signal.SIGTERM)

    assert running.wait(SECONDS) == 0
    assert noted(tmp_path, "began") == {dead}


@pytest.mark.slow
def test_workers_end_when_the_one_who_started_them_is_killed(
    running: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    until(lambda: len(noted(tmp_path, "began")) == 2)
    running.kill()

    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in noted(tmp_path, "began")))


def test_a_machine_without_room_for_a_worker_is_asked_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And those that run serve meanwhile."""
    monkeypatch.setattr(workers, "PAUSE_SECONDS", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = workers.Workers(listener, 1, ["/no/such/program"])
        made._replace()
        made._replace()

    assert caplog.text.count("cannot_start_worker") == 2


def test_signals_are_as_before_when_nobody_waits_for_them_any_more() -> None:
    before = [signal.getsignal(number) for number in workers.SIGNALS]
    with workers._stop_asked() as asked:
        during = [signal.getsignal(number) for number in workers.SIGNALS]
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)

        assert select.select([asked], [], [], SECONDS)[0] == [asked]
    assert [signal.getsignal(number) for number in workers.SIGNALS] == before != during
