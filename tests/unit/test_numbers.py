"""Numbers of clients: one way to read them, which nothing that a client writes can break."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servioticy.numbers import LARGEST, MAX_DIGITS, whole


@pytest.mark.parametrize(
    "text", ["", "²", "٣", "1_0", " 1", "1 ", "1\n", "+1", "0x1", "1e3", "-", "--1"]
)
def test_what_is_no_ascii_number_is_none(text: str) -> None:
    """`isdigit` takes the first two, `int` most of the others."""
    assert whole(text, least=-LARGEST) is None


def test_digits_are_bounded() -> None:
    """`int` refuses 5,000 digits with an error of its own, and needs long for fewer."""
    assert whole("0" * (MAX_DIGITS - 1) + "7") == 7
    assert whole("0" * MAX_DIGITS + "7") is None
    assert whole("9" * 5_000) is None
    assert whole(b"9" * 5_000_000) is None


def test_bounds_are_part_of_it() -> None:
    assert [whole(str(each), 1, 3) for each in range(5)] == [None, 1, 2, 3, None]
    assert whole(str(LARGEST)) == LARGEST
    assert whole(str(LARGEST + 1)) is None


def test_a_minus_is_for_those_who_may_be_below_zero() -> None:
    assert whole("-0") is None
    assert whole("-5", least=-5) == -5
    assert whole("-6", least=-5) is None


@given(st.integers(0, LARGEST))
def test_bytes_are_read_as_text_is(number: int) -> None:
    assert whole(str(number)) == whole(str(number).encode()) == number


@given(st.text() | st.binary())
def test_nothing_raises(text: str | bytes) -> None:
    found = whole(text)

    assert found is None or int(text) == found
