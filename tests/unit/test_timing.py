"""When a composite stream computes (the paper's section 3.4)."""

from __future__ import annotations

import pytest

from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.timing import (
    becomes_last,
    newest,
    too_far_ahead,
    triggers,
)


def test_without_an_output_so_far_any_trigger_computes() -> None:
    assert triggers(0, last_output=None)


def test_second_branch_of_a_diamond_is_discarded() -> None:
    """Two paths from one source carry one timestamp; only the first computes."""
    assert triggers(100, last_output=99)
    assert not triggers(100, last_output=100)
    assert not triggers(100, last_output=101)


def test_an_equal_timestamp_becomes_the_last_update() -> None:
    assert becomes_last(5, None)
    assert becomes_last(5, 5)
    assert not becomes_last(4, 5)


def test_a_group_is_its_newest_member_and_the_first_of_equals() -> None:
    a, b, c, d = (StreamRef(name, "s") for name in "abcd")
    first, second, old = LastUpdate(5, b"1"), LastUpdate(5, b"2"), LastUpdate(4, b"3")

    assert newest([(a, None), (b, old), (c, first), (d, second)]) == (c, first)
    assert newest([(a, None)]) is None
    assert newest([]) is None


@pytest.mark.parametrize("unit", [1, 1000], ids=["seconds", "milliseconds"])
def test_the_future_is_measured_in_the_devices_unit(unit: int) -> None:
    now = 1_500_000_000

    assert not too_far_ahead((now + 60) * unit, now, 60)
    assert too_far_ahead((now + 61) * unit, now, 60)


def test_small_ticks_are_never_too_far_ahead() -> None:
    assert not any(too_far_ahead(tick, 1_500_000_000, 0) for tick in (0, 1, 2, 3))
