"""What is kept of the updates in a window: exact, and whatever order they came in."""

from __future__ import annotations

import json
import math
import random
import statistics
from fractions import Fraction
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain.windows import sketches
from servioticy.domain.windows.aggregates import (
    MAX_CHANNELS,
    MOST,
    Aggregate,
    TooManyChannels,
)
from servioticy.domain.windows.moments import root

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = FLOATS | st.integers(-(2**70), 2**70) | st.integers(-5, 5) | st.sampled_from([0.1, -0.0])
OTHERS = (
    st.none()
    | st.booleans()
    | st.text(max_size=3)
    | st.lists(st.floats(0, 90), max_size=2)
    | st.integers(-(2**2000), 2**2000)
    | st.sampled_from(["x" * 2000, ["y" * 600] * 2])
)
CHANNELS = st.dictionaries(st.sampled_from("abc"), NUMBERS | OTHERS)
Updates = list[tuple[dict[str, Any], int, int]]
UPDATES = st.lists(st.tuples(CHANNELS, st.integers(0, 5)), max_size=30).map(
    lambda found: [
        ({name: {"current-value": value} for name, value in channels.items()}, at, order)
        for order, (channels, at) in enumerate(found)
    ]
)


def aggregate(updates: Updates, has_sketches: bool = True) -> Aggregate:
    found = Aggregate(has_sketches)
    for each in updates:
        found.add(*each)
    return found


def of(*values: Any, has_sketches: bool = False) -> Aggregate:
    """Of a channel `c` with these values, one after the other."""
    return aggregate(
        [({"c": {"current-value": each}}, at, 0) for at, each in enumerate(values)], has_sketches
    )


def told(*values: Any, key: str) -> Any:
    return of(*values).as_json(0, 1)[key]["c"]


def merged(updates: Updates, rng: random.Random) -> Aggregate:
    """The aggregate, made of parts of random sizes in a random order, some of them stored."""
    updates = rng.sample(updates, len(updates))
    if len(updates) < 2 or rng.random() < 0.2:
        return aggregate(updates)
    cut = rng.randrange(len(updates) + 1) if len(updates) > 2 else 1
    one, other = merged(updates[:cut], rng), merged(updates[cut:], rng)
    if rng.random() < 0.5:
        other = Aggregate.decode(other.encode())
    one.merge(other)
    return one


@given(UPDATES, st.randoms(use_true_random=False), st.sampled_from([8, 16, 2048]))
def test_order_and_parts_make_no_difference(
    updates: Updates, rng: random.Random, buckets: int
) -> None:
    """Byte by byte, and as scripts read it, with buckets enough and too few."""
    with mock.patch.object(sketches, "MAX_BUCKETS", buckets):
        whole, parts = aggregate(updates), merged(updates, rng)

    assert parts.encode() == whole.encode()
    assert json.dumps(parts.as_json(0, 1)) == json.dumps(whole.as_json(0, 1))


@given(UPDATES, st.booleans())
def test_what_is_stored_is_read_again(updates: Updates, has_sketches: bool) -> None:
    whole = aggregate(updates, has_sketches)
    read = Aggregate.decode(whole.encode())

    assert read.encode() == whole.encode()
    assert json.dumps(read.as_json(0, 1)) == json.dumps(whole.as_json(0, 1))


@given(st.lists(NUMBERS, min_size=1, max_size=30))
def test_numbers_are_those_of_exact_arithmetic(numbers: list[float]) -> None:
    """Rounded once: sums and means as fractions have them, deviations as statistics does."""
    exact = [Fraction(each) for each in numbers]
    found = of(*numbers).as_json(0, 1)

    assert found["sum"]["c"] == as_float(sum(exact))
    assert found["mean"]["c"] == as_float(sum(exact) / len(exact))
    assert (found["min"]["c"], found["max"]["c"]) == (min(numbers), max(numbers))
    assert (found["first"]["c"], found["last"]["c"]) == (numbers[0], numbers[-1])
    assert found["counts"]["c"] == found["count"] == len(numbers)
    if len(numbers) > 1 and as_float(statistics.variance(exact)) is not None:
        # Fractions have to be floats for statistics to round them.
        assert found["stdev"]["c"] == statistics.stdev(exact)


def as_float(number: Fraction) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


@given(st.integers(0, 2**2200), st.integers(1, 2**1200))
def test_a_root_is_the_float_next_to_it(numerator: int, denominator: int) -> None:
    """Nearer than its neighbours: between them and it, in the middle, are the borders."""
    found = root(numerator, denominator)
    if found is None:
        assert numerator > denominator * Fraction(MOST) ** 2
        return
    exact = Fraction(numerator, denominator)
    below = (Fraction(found) + Fraction(math.nextafter(found, 0))) / 2
    above = (Fraction(found) + Fraction(math.nextafter(found, math.inf))) / 2

    assert below**2 <= exact <= above**2


def test_what_no_float_can_hold_is_null() -> None:
    assert told(1e308, 1e308, key="sum") is None
    assert told(1e308, 1e308, key="mean") == 1e308
    assert told(1e308, -1e308, key="stdev") == pytest.approx(1.414213562373095e308)
    assert told(1.7e308, -1.7e308, key="stdev") is None
    assert told(5, key="stdev") is None


def test_sums_do_not_round_on_the_way() -> None:
    assert told(1e16, 1, -1e16, 2**60, 1, -(2**60), key="sum") == 2
    assert told(*[0.1] * 10, key="sum") == 1
    assert told(2**53, 1, key="sum") == 2.0**53
    assert told(5e-324, 1e308, -1e308, key="sum") == 5e-324


def test_equal_numbers_are_written_alike() -> None:
    """1 and 1.0 are one number: which of them came first is not to be seen."""
    large = 2**60
    for one, other in ((1, 1.0), (0, -0.0), (large, float(large))):
        assert json.dumps(told(one, other, key="min")) == json.dumps(told(other, one, key="min"))
    assert told(2**53 + 1, 2.0**53, key="max") == 2**53 + 1


def test_first_and_last_are_by_timestamp_and_then_by_order() -> None:
    updates = [
        ({"c": {"current-value": text}}, at, order)
        for text, at, order in [("b", 5, 2), ("a", 5, 1), ("z", 9, 3), ("y", 9, 0)]
    ]
    found = aggregate(updates).as_json(0, 10)

    assert (found["first"]["c"], found["last"]["c"]) == ("a", "z")


def test_what_is_no_number_is_counted_and_kept_if_it_is_short() -> None:
    assert told(True, "x", [1, 2.5], key="counts") == 3
    assert told(True, [13.4, 52.5], key="last") == [13.4, 52.5]
    assert told(True, [13.4, 52.5], key="first") is True
    assert told("x" * 1022, key="last") == "x" * 1022
    assert told("x" * 1023, key="last") is None
    assert told("ü" * 512, key="last") is None
    assert told(["x" * 1021], key="last") is None
    assert "c" not in of("x", True).as_json(0, 1)["sum"]


def test_a_channel_may_have_numbers_and_texts() -> None:
    """Members of a group may declare it differently."""
    found = of(1, "x", 3).as_json(0, 1)

    assert (found["counts"]["c"], found["mean"]["c"], found["last"]["c"]) == (3, 2, 3)


def test_a_channel_that_is_null_is_as_one_that_is_not_there() -> None:
    found = of(None, 2, None).as_json(0, 1)

    assert (found["count"], found["counts"]["c"], found["last"]["c"]) == (3, 1, 2)
    assert of(None).as_json(0, 1)["counts"] == {}


def test_the_form_that_scripts_read() -> None:
    updates = [
        ({"t": {"current-value": -2.5}, "name": {"current-value": "a"}}, 7, 0),
        ({"t": {"current-value": 0}, "extra": {"unit": "C"}}, 8, 0),
        ({"t": {"current-value": 4, "unit": "C"}}, 9, 0),
    ]
    found = aggregate(updates).as_json(5, 10)
    sketch = found.pop("sketches")["t"]

    assert found == {
        "count": 3,
        "start": 5,
        "end": 10,
        "sum": {"t": 1.5},
        "mean": {"t": 0.5},
        "min": {"t": -2.5},
        "max": {"t": 4},
        "stdev": {"t": statistics.stdev([-2.5, 0, 4])},
        "first": {"name": "a", "t": -2.5},
        "last": {"name": "a", "t": 4},
        "counts": {"name": 1, "t": 3},
    }
    assert (sketch["zero"], sketch["negative"], sketch["positive"]) == (1, [[46, 1]], [[70, 1]])
    assert sketch["gamma"] == pytest.approx(1.01 / 0.99)
    assert "sketches" not in aggregate(updates, has_sketches=False).as_json(5, 10)


def test_an_empty_one_has_nothing() -> None:
    found = Aggregate().as_json(None, None)

    assert found.pop("count") == 0
    assert not any(found.values())


def test_channels_are_bounded() -> None:
    """An update that has more is not taken, and an update that has the same is."""
    full = {f"c{n}": {"current-value": n} for n in range(MAX_CHANNELS)}
    found = aggregate([(full, 0, 0)])
    before = found.encode()
    with pytest.raises(TooManyChannels, match="more than 1000 channels"):
        found.add({"more": {"current-value": 1}}, 1, 0)
    with pytest.raises(TooManyChannels, match="more than 1000 channels"):
        found.merge(of(1))

    assert found.encode() == before
    found.add({**full, "more": {"current-value": None}}, 1, 0)
    found.merge(aggregate([(full, 2, 0)]))
    assert found.count == 3


def test_another_form_is_not_read() -> None:
    with pytest.raises(ValueError, match="form 2, which is not known"):
        Aggregate.decode(b"\x94\x02\xc2\x00\x80")


def test_a_window_of_many_updates_is_stored_in_few_bytes() -> None:
    rng = random.Random(1)
    found = of(*(rng.gauss(20, 5) for _ in range(10_000)), has_sketches=True)

    assert len(found.encode()) < 1500
