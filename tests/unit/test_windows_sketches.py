"""Quantiles by buckets: their error, and the rule by which others read the buckets."""

from __future__ import annotations

import math
import random
from math import floor
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain.windows import sketches
from servioticy.domain.windows.aggregates import MOST, Aggregate
from servioticy.domain.windows.sketches import ERROR, GAMMA, MAX_BUCKETS, Sketch

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def sketch_of(numbers: list[float]) -> Sketch:
    found = Sketch()
    for each in numbers:
        found.add(each)
    return found


def read(sketch: dict[str, Any], q: float, least: float, most: float) -> float:
    """The rule as the documentation tells it, over what scripts are given."""
    gamma = sketch["gamma"]
    counted = [(-1, index, count) for index, count in reversed(sketch["negative"])]
    counted.append((0, 0, sketch["zero"]))
    counted += [(1, index, count) for index, count in sketch["positive"]]
    rank = floor(q * (sum(count for _, _, count in counted) - 1))
    below = 0
    for sign, index, count in counted:
        below += count
        if below > rank:
            return max(least, min(most, sign * 2 * gamma**index / (gamma + 1)))
    raise AssertionError(rank)


@given(st.lists(FLOATS, min_size=1, max_size=50), st.floats(0, 1))
def test_a_quantile_is_off_by_one_part_in_a_hundred_at_most(
    numbers: list[float], q: float
) -> None:
    exact = sorted(numbers)[floor(q * (len(numbers) - 1))]
    found = sketch_of(numbers).quantile(q, min(numbers), max(numbers))

    assert abs(found - exact) <= (ERROR + 1e-9) * abs(exact)


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=50), st.floats(0, 1))
def test_scripts_read_what_python_does(numbers: list[float], q: float) -> None:
    found = sketch_of(numbers)
    least, most = min(numbers), max(numbers)

    assert read(found.as_json(), q, least, most) == found.quantile(q, least, most)


@pytest.mark.parametrize("number", [5e-324, 2.2e-308, 1.0, GAMMA, 1.7976931348623157e308, MOST])
def test_the_ends_of_what_floats_hold_have_buckets(number: float) -> None:
    for value in (number, -number):
        assert sketch_of([value]).quantile(0.5, value, value) == value
        assert sketch_of([value, value]).count == 2


def test_buckets_are_bounded_and_tell_their_error() -> None:
    """Numbers of all magnitudes: each joining squares gamma, as UDDSketch has it."""
    rng = random.Random(3)
    numbers = [rng.choice((-1, 1)) * math.exp(rng.uniform(-600, 600)) for _ in range(60_000)]
    found = sketch_of(numbers)
    error = (found.gamma - 1) / (found.gamma + 1)

    assert found.level == 5
    assert found.gamma == GAMMA**32
    assert len(found.positive) <= MAX_BUCKETS
    assert len(found.negative) <= MAX_BUCKETS
    ordered = sorted(numbers)
    for q in (0, 0.01, 0.25, 0.5, 0.9, 0.999, 1):
        exact = ordered[floor(q * (len(numbers) - 1))]
        value = found.quantile(q, ordered[0], ordered[-1])
        assert abs(value - exact) <= (error + 1e-9) * abs(exact)


def test_joined_sketches_are_merged_to_the_same_in_any_order() -> None:
    """With the bound as it is: parts with few buckets, with many, and joined ones."""
    rng = random.Random(4)
    numbers = [math.exp(rng.uniform(-300, 300)) for _ in range(8000)]
    numbers += [rng.gauss(0, 1) for _ in range(4000)]
    whole = sketch_of(numbers)
    assert whole.level > 1
    for _ in range(3):
        rng.shuffle(numbers)
        cuts = sorted(rng.sample(range(len(numbers)), 5))
        parts = [sketch_of(numbers[a:b]) for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
        rng.shuffle(parts)
        merged = Sketch()
        for each in parts:
            merged.merge(each)

        assert merged.as_json() == whole.as_json()
        assert merged.level == whole.level


def test_few_buckets_are_joined_to_the_same_however_parts_are_merged() -> None:
    """With too little room all the time; no fewer than 8 buckets do for all floats."""
    joined = 0
    for seed in range(200):
        rng = random.Random(seed)
        with mock.patch.object(sketches, "MAX_BUCKETS", rng.choice((8, 12, 30))):
            width = rng.choice((1, 20, 700))
            numbers = [
                rng.choice((-1, 1, 0.5, 0)) * math.exp(rng.uniform(-width, width))
                for _ in range(rng.randrange(1, 150))
            ]
            whole = sketch_of(numbers)
            rng.shuffle(numbers)
            parts = [sketch_of(numbers[at : at + 9]) for at in range(0, len(numbers), 9)]
            while len(parts) > 1:
                one = parts.pop(rng.randrange(len(parts)))
                parts[rng.randrange(len(parts))].merge(one)

        assert (parts[0].level, parts[0].as_json()) == (whole.level, whole.as_json())
        joined += whole.level > 0
    assert joined > 100


def test_an_aggregate_is_asked_for_quantiles_by_channel() -> None:
    found = Aggregate(sketches=True)
    for at in range(101):
        found.add({"c": {"current-value": at}, "text": {"current-value": "x"}}, at, 0)

    assert found.quantile("c", 0.9) == pytest.approx(90, rel=ERROR)
    assert found.quantile("c", 0) == 0
    assert found.quantile("text", 0.5) is None
    assert found.quantile("none", 0.5) is None
    assert Aggregate().quantile("c", 0.5) is None
