"""Who yields yields to other programs, too, where sessions share the processor."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox import yielding
from sandbox.yielding import LEAST, may_change_many, take_what_is_left, yield_to_others


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


def in_a_child(become: Callable[[], str]) -> str:
    """Return what a child says that it has become."""
    asks, tells = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(tells, become().encode())
        finally:
            os._exit(0)
    os.close(tells)
    os.waitpid(child, 0)
    with os.fdopen(asks) as said:
        return said.read()


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

    def become() -> str:
        take_what_is_left()
        group = yielding.AUTOGROUP
        said = group.read_text().split()[-1] if group.exists() else str(LEAST)
        own = os.getsid(0) == os.getpid()
        return f"{own} {os.sched_getscheduler(0) == os.SCHED_IDLE} {said}"

    assert in_a_child(become) == f"True True {LEAST}"


def test_who_is_refused_what_is_left_takes_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by filters of system calls: to end for that would be worse for the tenant than for us."""

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)

    def become() -> str:
        take_what_is_left()
        return str(os.getpriority(os.PRIO_PROCESS, 0))

    assert in_a_child(become) == str(LEAST)


def test_where_no_session_can_be_changed_the_one_that_yields_is_not_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new one would have the priority of all."""
    monkeypatch.setattr(os, "access", lambda *_: False)

    def become() -> str:
        before = os.getsid(0)
        take_what_is_left()
        return str(os.getsid(0) == before)

    expected = yielding.AUTOGROUP.exists()
    assert in_a_child(become) == str(expected)


@pytest.mark.parametrize(
    ("users", "powers", "may"),
    [
        ("         0          0 4294967295\n", "000001ffffffffff", True),
        ("         0          0 4294967295\n", "00000000a80425fb", False),
        ("         0          0          1\n", "000001ffffffffff", False),
        ("         0     100000      65536\n", "000001ffffffffff", False),
        ("         0          0 4294967295\n", "0000000000000000", False),
    ],
    ids=["root", "of a container", "alone", "of others", "no root"],
)
def test_many_sessions_are_changed_by_who_may(
    users: str, powers: str, may: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Being called root is not enough: it would wait, and then keep the priority of all."""
    for name, text in (
        ("USERS", users),
        ("STATUS", f"CapPrm:\t0\nCapEff:\t{powers}\nSeccomp:\t0\n"),
    ):
        file = tmp_path / name
        file.write_text(text)
        monkeypatch.setattr(yielding, name, file)
    monkeypatch.setattr(yielding, "AUTOGROUP", tmp_path / "absent")

    assert may_change_many() is may


def test_where_sessions_are_not_grouped_the_process_yields_alone(
    autogroup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered: list[int] = []
    monkeypatch.setattr(os, "nice", lowered.append)
    monkeypatch.setattr(yielding, "AUTOGROUP", autogroup / "absent")
    yield_to_others(5)

    assert lowered == [5]
