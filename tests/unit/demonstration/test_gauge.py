"""A value within its band, as a terminal shows it."""

from __future__ import annotations

import math

import pytest

from demonstration.gauge import GAUGE, Band, gauge, place

LOW, HIGH = 10.0, 20.0


@pytest.mark.parametrize(
    ("value", "drawn"),
    [
        (-1e9, "! [·········]  "),
        (9.0, " ![·········]  "),
        (math.nextafter(LOW, 0), " ![·········]  "),
        (LOW, "  [●········]  "),
        (15.0, "  [····●····]  "),
        (HIGH, "  [········●]  "),
        (math.nextafter(HIGH, 99), "  [·········]! "),
        (21.0, "  [·········]! "),
        (1e9, "  [·········] !"),
    ],
)
def test_a_border_is_inside_and_the_next_number_beyond_it_is_not(value: float, drawn: str) -> None:
    assert gauge(place(value, LOW, HIGH)) == drawn
    assert len(drawn) == GAUGE


@pytest.mark.parametrize(
    ("value", "drawn"),
    [
        (5.0, "  [····●····]  "),
        (math.nextafter(5.0, 9), "  [·········] !"),
        (math.nextafter(5.0, 0), "! [·········]  "),
    ],
)
def test_a_band_without_width_has_one_value_in_it(value: float, drawn: str) -> None:
    assert gauge(place(value, 5.0, 5.0)) == drawn


@pytest.mark.parametrize("low", [1.0, 1e9, -1e-300])
def test_no_rounding_brings_a_value_inside(low: float) -> None:
    """The quotient of two borders and what is just beyond one of them is the border's own."""
    high = low + abs(low) * 0.3

    assert place(math.nextafter(low, -math.inf), low, high) < 0
    assert place(low, low, high) == 0
    assert place(high, low, high) == 1
    assert place(math.nextafter(high, math.inf), low, high) > 1


def test_behind_the_gauge_is_where_the_values_before_were() -> None:
    """As many as there is room for, the newest last."""
    band = Band(GAUGE + 1 + 6)
    for value in (99.0, 10.0, 9.0, 21.0, 20.0, 15.0, 10.0, 20.0):
        band.add(value, LOW, HIGH)

    assert band.drawn() == "  [········●]   ▁▼▲█▅▁"


def test_where_there_is_little_room_the_gauge_is_there() -> None:
    band = Band(5)
    assert band.drawn() == ""
    band.add(15.0, LOW, HIGH)

    assert band.drawn().rstrip() == "  [····●····]"
