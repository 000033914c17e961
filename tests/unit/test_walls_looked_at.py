"""Whether programs can be enclosed is looked at until it has been seen, and then no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from api.resources import operators
from operators.guest.launch import REQUIRED
from servioticy.errors import Unavailable

ALL = dict.fromkeys(REQUIRED, "")


def walls(
    monkeypatch: pytest.MonkeyPatch, look: Callable[[], Mapping[str, str]]
) -> operators._Walls:
    """Return what looks so."""
    monkeypatch.setattr(operators, "layers", look)
    return operators._Walls()


def test_a_slow_moment_forbids_nothing_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who pushes then tries again later; what has been seen stays."""
    looks = iter([TimeoutError("it has not begun"), OSError("no process is left"), ALL])

    def look() -> Mapping[str, str]:
        found = next(looks)
        if isinstance(found, OSError):
            raise found
        return found

    found = walls(monkeypatch, look)
    for reason in ("it has not begun", "no process is left"):
        with pytest.raises(Unavailable, match=reason):
            found.why_not()

    assert [found.why_not(), found.why_not()] == ["", ""]


def test_what_is_lacking_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """It will not come while the process runs."""
    looks = iter([{**ALL, "seccomp": "it is off"}])
    found = walls(monkeypatch, lambda: next(looks))

    assert [found.why_not(), found.why_not()] == ["seccomp: it is off"] * 2


def test_many_who_push_look_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look begins a process."""
    looks, began, go_on = [], Event(), Event()

    def look() -> Mapping[str, str]:
        looks.append(1)
        began.set()
        assert go_on.wait(60.0)
        return ALL

    found = walls(monkeypatch, look)
    with ThreadPoolExecutor(4) as pushing:
        told = [pushing.submit(found.why_not) for _ in range(4)]
        assert began.wait(60.0)
        go_on.set()
        assert [each.result(60.0) for each in told] == [""] * 4

    assert len(looks) == 1
