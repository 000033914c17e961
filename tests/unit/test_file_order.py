"""Files that start whole programs come in an order, and an idle platform is not kept running."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import file_order
import pytest
import running_platform


def a_test(file: str, *fixtures: str, seconds: float | None = None) -> Any:
    mark = None if seconds is None else pytest.mark.timeout(seconds).mark
    return SimpleNamespace(
        path=Path("tests", file), fixturenames=fixtures, get_closest_marker=lambda _name: mark
    )


def test_what_needs_the_platform_comes_first_and_then_what_may_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_order, "_of_platform", set())
    items = [
        a_test("unit/test_b.py", "platform"),
        a_test("unit/test_a.py"),
        a_test("end_to_end/test_alone.py"),
        a_test("faults/test_kill.py", "platform", seconds=900.0),
        a_test("faults/test_long.py", seconds=900.0),
        a_test("end_to_end/test_pages.py"),
        a_test("end_to_end/test_pages.py", "platform"),
        a_test("faults/test_many.py"),
        a_test("faults/test_many.py"),
    ]

    file_order.sort(items)

    assert [each.path.stem for each in items] == [
        *("test_b", "test_a"),
        *("test_pages", "test_pages", "test_kill"),
        *("test_long", "test_many", "test_many", "test_alone"),
    ]
    assert file_order.needs_platform(Path("tests/end_to_end/test_pages.py"))
    assert not file_order.needs_platform(Path("tests/faults/test_long.py"))


def test_the_platform_rests_while_nobody_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    running = SimpleNamespace(
        rests=False, start=lambda: done.append("start"), stop=lambda: done.append("stop")
    )
    monkeypatch.setattr(running_platform, "_shared", [running])

    for needed in (True, False, False, True, True):
        running_platform.rest(needed=needed)

    assert done == ["stop", "start"]
    assert not running.rests
