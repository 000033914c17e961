"""How a browser's memory is told: at which minutes, and by how much it grows in an hour."""

from __future__ import annotations

import pytest

from benchmarks.console.memory import Look, each_minute, grown


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [(0, [0]), (0.5, [0, 0.5]), (2, [0, 1, 2]), (2.25, [0, 1, 2, 2.25])],
)
def test_there_is_a_look_at_first_each_minute_and_at_the_end(
    minutes: float, expected: list[float]
) -> None:
    assert list(each_minute(minutes)) == expected


def test_growth_is_told_of_the_second_half_alone() -> None:
    """What a browser takes to settle says nothing of a leak."""
    settling = [Look(minute, 2 + minute, 400, 80, 300) for minute in range(10)]
    leaking = [Look(minute, 12, 400, 80 + minute, 300 - 2 * minute) for minute in range(10, 20)]

    assert grown(settling + leaking).endswith(": JavaScript +0.0, page +60.0, browser -120.0")


def test_one_look_tells_no_growth() -> None:
    assert "too short" in grown([Look(0, 2, 400, 80, 300)])
