"""Who yields yields to other programs, too, where sessions share the processor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox import yielding
from sandbox.yielding import yield_to_others


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


def test_where_sessions_are_not_grouped_the_process_yields_alone(
    autogroup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered: list[int] = []
    monkeypatch.setattr(os, "nice", lowered.append)
    monkeypatch.setattr(yielding, "AUTOGROUP", autogroup / "absent")
    yield_to_others(5)

    assert lowered == [5]
