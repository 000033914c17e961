"""Numbers as blocks."""

from __future__ import annotations

from demonstration.board import Trace
from demonstration.sparkline import sparkline


def test_the_lowest_and_highest_take_the_lowest_and_highest_block() -> None:
    assert sparkline([0, 7, 3.5], 10) == "▁█▅"


def test_only_the_last_values_are_drawn() -> None:
    assert sparkline([9, 9, 0, 1], 2) == "▁█"


def test_equal_values_are_a_flat_line_and_none_is_empty() -> None:
    assert sparkline([5, 5, 5], 8) == "▁▁▁"
    assert sparkline([], 8) == ""
    assert sparkline([1], 0) == ""


def test_a_trace_keeps_the_whole_series_in_its_width() -> None:
    """A dip at the beginning is still to be seen at the end."""
    trace = Trace(width=8)
    for value in [0.0] * 32 + [1.0] * 32:
        trace.add(value)

    assert len(trace.points) <= 8
    assert trace.points[0] == 0.0
    assert trace.points[-1] == 1.0
