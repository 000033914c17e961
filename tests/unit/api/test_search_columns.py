"""Columns: whatever the values, no update that fits is left out."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

from api.search import columns
from servioticy.domain.search.criteria import NumberWithin

NUMBERS = st.one_of(
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3).map(float),
)
ROWS = 4
BLOCKS = st.lists(st.lists(NUMBERS, min_size=ROWS, max_size=ROWS), min_size=1, max_size=5)


@example([[1.7e308, -1.7e308, 0.0, 1.0]], 1.7e308, None)  # further apart than a float can tell
@example([[None] * ROWS, [5.0] * ROWS], 5.0, 5.0)
@given(BLOCKS, st.none() | st.floats(allow_nan=False), st.none() | st.floats(allow_nan=False))
def test_every_number_that_fits_is_a_candidate(
    blocks: list[list[float | None]], low: float | None, high: float | None
) -> None:
    condition = NumberWithin("v", low, high)
    made = [columns.column(condition, values) for values in blocks]

    found = columns.candidates(condition, [b for b, _ in made], [c for _, c in made], ROWS)

    first = -math.inf if low is None else low
    last = math.inf if high is None else high
    for values, (bounds, _), mask in zip(blocks, made, found, strict=True):
        fitting = [each is not None and first <= each <= last for each in values]
        assert all(mask[number] for number, fits in enumerate(fitting) if fits)
        assert columns.may_hold(condition, bounds) or not any(fitting)
