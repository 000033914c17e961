"""The bands of the real series: as pandas computes them, and as one can work out by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from demonstration import series, smoothing
from demonstration.smoothing import DEVIATIONS, SMOOTHING, VALUES, Point
from demonstration.templates import BANDS


@pytest.fixture(scope="module", params=[each.label for each in BANDS])
def measured(request: pytest.FixtureRequest) -> pd.Series:
    """What one device measured."""
    found = [each for each in (*series.room(), *series.water()) if each.device == request.param]
    return pd.Series([each.value for each in found], [each.timestamp for each in found])


def test_bands_are_as_pandas_computes_them(measured: pd.Series) -> None:
    mean = measured.ewm(alpha=1 - SMOOTHING, adjust=False).mean()
    reach = DEVIATIONS * measured.rolling(VALUES).std(ddof=0)
    whole = pd.DataFrame(
        {"value": measured, "smoothed": mean, "low": mean - reach, "high": mean + reach}
    ).iloc[VALUES - 1 :]
    found = list(smoothing.band(measured.items()))

    assert [each.at for each in found] == list(whole.index)
    for each, row in zip(found, whole.itertuples(index=False), strict=True):
        assert each[1:] == pytest.approx(tuple(row), rel=1e-6)
    outside = whole[(whole.value < whole.low) | (whole.value > whole.high)]
    assert [each.at for each in found if each.is_anomaly] == list(outside.index)
    assert 0 < len(outside) < len(whole) / 4


def test_the_first_value_is_the_first_smoothed_one() -> None:
    assert list(smoothing.smoothed([10.0, 20.0, 20.0])) == pytest.approx([10.0, 13.0, 15.1])


def test_a_series_that_stands_still_is_inside_a_band_without_width() -> None:
    """0.1 is no binary number: by the two terms of the recurrence it would leave itself."""
    (*_, last) = smoothing.band((at, 0.1) for at in range(100))

    assert last == Point(99, 0.1, 0.1, 0.1, 0.1)
    assert not last.is_anomaly


def test_there_is_a_band_once_there_are_enough_values() -> None:
    assert [each.at for each in smoothing.band((at, 1.0) for at in range(VALUES))] == [VALUES - 1]
    assert list(smoothing.band((at, 1.0) for at in range(VALUES - 1))) == []


def test_what_rises_steadily_stays_inside_and_a_jump_falls_out() -> None:
    """As the constants are chosen."""
    steady = [float(at) for at in range(200)]
    jumped = [each + 20 * (at >= 150) for at, each in enumerate(steady)]

    assert [each.at for each in smoothing.band(enumerate(steady)) if each.is_anomaly] == []
    outside = [each.at for each in smoothing.band(enumerate(jumped)) if each.is_anomaly]
    assert outside
    assert outside[0] == 150


@pytest.mark.parametrize(
    ("value", "is_one"), [(1.0, False), (3.0, False), (0.9, True), (3.1, True)]
)
def test_a_border_belongs_to_the_band(value: float, is_one: bool) -> None:
    assert Point(1, value, 2.0, 1.0, 3.0).is_anomaly == is_one
