"""Who yields yields to other programs, too, where sessions share the processor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox import yielding
from sandbox.yielding import LEAST, take_what_is_left, yield_to_others


@pytest.fixture
def autogroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of a process whose session is its own; its priority stays as it is."""
    file = tmp_path / "autogroup"
    monkeypatch.setattr(yielding, "AUTOGROUP", file)
    monkeypatch.setattr(os, "nice", lambda _nice: 0)
    monkeypatch.setattr(os, "getsid", lambda _pid: os.getpid())
    return file


def test_a_session_of_its_own_yields_as_much(autogroup: Path) -> None:
    yield_to_others(5)

    assert autogroup.read_text() == "5"


def test_a_session_of_others_is_left_as_it_is(
    autogroup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getsid", lambda _pid: os.getpid() - 1)
    yield_to_others(5)

    assert not autogroup.exists()


def test_who_yields_nothing_writes_nothing(autogroup: Path) -> None:
    yield_to_others(0)

    assert not autogroup.exists()


class Busy:
    """Linux refuses twice what was changed a moment ago, and then it does not."""

    def __init__(self) -> None:
        self.refused = 0
        self.written: list[str] = []

    def write_text(self, text: str) -> None:
        if self.refused < 2:
            self.refused += 1
            raise BlockingIOError
        self.written.append(text)


def test_who_comes_a_moment_after_another_tries_again(
    autogroup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise one of two programs that start together would keep the priority of all."""
    busy = Busy()
    monkeypatch.setattr(yielding, "AUTOGROUP", busy)
    monkeypatch.setattr(yielding, "PAUSE_SECONDS", 0.0)
    yield_to_others(5)

    assert busy.written == ["5"]
    assert not autogroup.exists()


def test_what_is_left_is_taken_in_a_session_of_its_own() -> None:
    """By Linux itself: a child tells what it has become."""
    asks, tells = os.pipe()
    child = os.fork()
    if child == 0:
        take_what_is_left()
        group = yielding.AUTOGROUP
        said = group.read_text().split()[-1] if group.exists() else str(LEAST)
        own = os.getsid(0) == os.getpid()
        os.write(tells, f"{own} {os.sched_getscheduler(0) == os.SCHED_IDLE} {said}".encode())
        os._exit(0)
    os.waitpid(child, 0)

    assert os.read(asks, 100) == f"True True {LEAST}".encode()
    os.close(asks)
    os.close(tells)


def test_where_sessions_are_not_grouped_the_process_yields_alone(
    autogroup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered: list[int] = []
    monkeypatch.setattr(os, "nice", lowered.append)
    monkeypatch.setattr(yielding, "AUTOGROUP", autogroup / "absent")
    yield_to_others(5)

    assert lowered == [5]
