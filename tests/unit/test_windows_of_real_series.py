"""Windows over the demonstration's series, value by value as pandas and DuckDB compute them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import nan
from typing import Any

import duckdb
import pandas as pd
import pytest
from windowed_composite import BASE, Composite

from demonstration import series
from servioticy.domain.evaluators.operators import Answer

DAY = 86_400
SIZES = {"45m": "45min", "6h": "6h", "1d": "1D"}
"""As we and pandas write them."""
FIRST = ["count", "sum", "mean", "std", "min", "max", "first", "last"]
OURS = {"std": "stdev"}

BUCKETS = """
SELECT epoch(time_bucket(INTERVAL '6 hours', t, TIMESTAMP '1970-01-01'))::BIGINT AS start,
       count(v), sum(v), avg(v), stddev_samp(v), min(v), max(v), arg_min(v, t), arg_max(v, t)
  FROM readings
 GROUP BY ALL
 ORDER BY ALL
"""

HOPS = """
SELECT epoch(begun)::BIGINT AS start,
       count(v), sum(v), avg(v), stddev_samp(v), min(v), max(v), arg_min(v, t), arg_max(v, t)
  FROM readings
  JOIN generate_series(TIMESTAMP '2015-01-01', TIMESTAMP '2023-01-01', INTERVAL '2 hours')
       AS hops(begun)
    ON t >= begun AND t < begun + INTERVAL '6 hours'
 GROUP BY ALL
 ORDER BY ALL
"""


@pytest.fixture(scope="module", params=sorted(series.UNITS))
def readings(request: pytest.FixtureRequest) -> pd.Series:
    """What one device measured."""
    found = [each for each in (*series.room(), *series.water()) if each.device == request.param]
    times = pd.to_datetime([each.timestamp for each in found], unit="s")
    return pd.Series([each.value for each in found], times)


@pytest.mark.parametrize("size", SIZES)
def test_tumbling_windows_are_as_pandas_resamples(readings: pd.Series, size: str) -> None:
    bins = readings.resample(SIZES[size], origin="epoch").agg(FIRST)
    rows = bins[bins["count"] > 0].itertuples()
    wanted = [(_seconds(start), *values) for start, *values in rows]

    _equal(_windows(readings, {"type": "tumbling", "size": size}), wanted)


@pytest.mark.parametrize("size", SIZES)
def test_sliding_windows_are_as_pandas_rolls(readings: pd.Series, size: str) -> None:
    """pandas goes on from one window to the next, which rounds: to so many digits."""
    names = ["count", "sum", "mean", "std", "min", "max"]
    rows = readings.rolling(SIZES[size]).agg(names).itertuples()
    found = _windows(readings, {"type": "sliding", "size": size})

    ours = [(air["end"] - 1, *_values(air, names)) for air in found]
    wanted = [(_seconds(at), *values) for at, *values in rows]
    _same(ours, wanted, 1e-6)


def test_windows_of_so_many_updates_are_as_pandas_rolls(readings: pd.Series) -> None:
    names = ["count", "mean", "std", "min", "max"]
    rows = readings.rolling(24, step=1).agg(names).iloc[23::6].itertuples()
    found = _windows(readings, {"type": "count", "size": 24, "every": 6})

    ours = [(air["end"] - 1, *_values(air, names)) for air in found]
    _same(ours, [(_seconds(at), *values) for at, *values in rows], 1e-6)


def test_quantiles_are_those_of_pandas_to_one_part_in_a_hundred(readings: pd.Series) -> None:
    groups = readings.resample("1D", origin="epoch")
    wanted = groups.quantile(0.9, interpolation="lower")[groups.count() > 0]
    found = _windows(readings, {"type": "tumbling", "size": "1d"}, "a.quantile('v', 0.9)")

    ours = [_quantile(air["sketches"]["v"], air["count"], 0.9) for air in found]
    assert len(ours) > 5
    assert ours == pytest.approx(list(wanted), rel=0.0101)


@pytest.mark.parametrize(
    ("statement", "window"),
    [
        (BUCKETS, {"type": "tumbling", "size": "6h"}),
        (HOPS, {"type": "hopping", "size": "6h", "every": "2h"}),
    ],
)
def test_windows_are_as_duckdb_groups(
    readings: pd.Series, statement: str, window: dict[str, Any]
) -> None:
    with duckdb.connect() as database:
        database.register("readings", pd.DataFrame({"t": readings.index, "v": readings.array}))
        wanted = database.execute(statement).fetchall()

    _equal(_windows(readings, window), wanted)


def _windows(readings: pd.Series, window: dict[str, Any], code: str = "") -> list[dict[str, Any]]:
    """All windows of a stream that sends these one after the other, and then falls silent."""
    composite = Composite(window, code=code)
    answers = [composite.put(_seconds(at) - BASE, value) for at, value in readings.items()]
    if window["type"] != "count":
        silent = _seconds(readings.index[-1]) - BASE + 2 * DAY
        answers += [composite.tick(silent), composite.tick(silent + 1)]
    return [json.loads(each.document)["windows"][0] for each in _outputs(answers)]


def _outputs(answers: Iterable[Answer]) -> list[Any]:
    return [output for answer in answers for output in answer.outputs]


def _values(air: dict[str, Any], names: Iterable[str]) -> list[Any]:
    return [air["count"] if name == "count" else air[OURS.get(name, name)]["v"] for name in names]


def _equal(found: list[dict[str, Any]], wanted: list[tuple[Any, ...]]) -> None:
    _same([(air["start"], *_values(air, FIRST)) for air in found], wanted, 1e-9)


def _same(ours: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]], part: float) -> None:
    """Compare each value; the deviation of a single one is none."""
    assert len(ours) == len(wanted) > 5
    for mine, theirs in zip(ours, wanted, strict=True):
        mine, theirs = ([nan if each is None else each for each in row] for row in (mine, theirs))
        assert mine == pytest.approx(theirs, rel=part, abs=part, nan_ok=True)


def _quantile(sketch: dict[str, Any], count: int, q: float) -> float:
    """By the rule that scripts have (`Sketch.quantile`), of numbers that are not negative."""
    rank, below = int(q * (count - 1)), sketch["zero"]
    if below > rank:
        return 0.0
    for index, many in sketch["positive"]:
        below += many
        if below > rank:
            return float(2 * sketch["gamma"] ** index / (sketch["gamma"] + 1))
    raise AssertionError("fewer numbers than it says")


def _seconds(at: pd.Timestamp) -> int:
    return int(at.timestamp())
