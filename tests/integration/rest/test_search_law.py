"""What blocks are for is speed: with them and without, whatever comes when, the same is found."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import Caller, Served
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from search_builders import (
    DISTANCE,
    DOCUMENT,
    FIELD,
    MATCH,
    NUMBER,
    STREAM,
    Store,
    box,
    search,
    times,
    update,
)

from api.search import blocks, walk
from servioticy.domain.documents.criteria import parse_criteria

VALUES = st.fixed_dictionaries(
    {},
    optional={
        "n": st.one_of(
            st.integers(-3, 3),
            st.floats(-3, 3),
            st.sampled_from([1e300, -1e300, 2**60, 2**64 - 1]),
        ),
        "many": st.lists(st.integers(-3, 3), max_size=3),
        "text": st.lists(st.sampled_from("abc"), max_size=4).map(" ".join),
        "location": st.one_of(
            st.sampled_from(["u0m", "s", "0,180", "0,-180", [0, 0], "90,0", None]),
            st.tuples(st.floats(-180, 180), st.floats(-90, 90)).map(list),
        ),
    },
)
BOUNDS = st.fixed_dictionaries(
    {}, optional={"rangefrom": st.floats(-4, 30), "rangeto": st.floats(-4, 30)}
)
ANGLE = st.floats(-200, 200)
CRITERIA = st.builds(
    lambda *parts: {key: value for part in parts for key, value in part.items()},
    st.just({}) | st.just({"timerange": True}),
    st.just({}) | st.sampled_from([NUMBER, {**NUMBER, "numericrangefield": FIELD.format("many")}]),
    st.just({}) | st.sampled_from("abcd").map(lambda word: {**MATCH, "string": f"{word} x"}),
    st.just({})
    | st.builds(box, ANGLE, ANGLE, ANGLE, ANGLE)
    | st.builds(
        lambda lat, lon, km: {
            **DISTANCE,
            "pointlat": lat,
            "pointlon": lon,
            "geodistancevalue": km,
        },
        st.floats(-90, 90),
        st.floats(-180, 180),
        st.floats(0, 21_000),
    ),
    BOUNDS,
    st.just({}) | st.builds(lambda n: {"limit": True, "limitcount": n}, st.integers(1, 9)),
)
STEPS = st.lists(
    st.lists(st.tuples(st.integers(0, 30), VALUES), max_size=12) | CRITERIA,
    min_size=2,
    max_size=12,
)


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS, rows=st.integers(1, 4), pages=st.integers(1, 5))
def test_blocks_change_nothing(
    served: Served,
    alice: Caller,
    monkeypatch: pytest.MonkeyPatch,
    steps: list[Any],
    rows: int,
    pages: int,
) -> None:
    monkeypatch.setattr(walk, "ROWS", rows)
    monkeypatch.setattr(walk, "PAGE_ROWS", pages)
    monkeypatch.setattr(blocks, "PLANNED", pages)
    monkeypatch.setattr(walk, "BLOCKS_AT_ONCE", 2)
    so = alice.create(DOCUMENT)
    served.store()
    store, known = Store(served.platform, so), dict[int, dict[str, Any]]()
    for step in steps:
        if isinstance(step, list):
            new = [update(at, **values) for at, values in step]
            store.add(*new)
            known |= {each["lastUpdate"]: each for each in new}
        else:
            expected = fitting(known, step)
            assert times(search(alice, so, step)) == expected
            assert times(search(alice, so, step)) == expected


def fitting(known: dict[int, dict[str, Any]], document: dict[str, Any]) -> list[int]:
    """What a search has to find, by looking at everything."""
    criteria = parse_criteria(document, STREAM)
    found = [
        at
        for at, each in sorted(known.items())
        if any(first <= at <= last for first, last in criteria.spans)
        and all(
            condition.holds(each["channels"].get(condition.channel, {}).get("current-value"))
            for condition in criteria.conditions
        )
    ]
    return found[: criteria.most]
