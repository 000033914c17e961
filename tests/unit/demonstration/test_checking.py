"""The demonstration notices every value that is not what its series say."""

from __future__ import annotations

import pytest

from demonstration import __main__ as demonstration
from demonstration import checking, series
from demonstration.checking import differences, expected
from demonstration.series import Reading
from demonstration.templates import BANDS, SHOWN

ROOM = [
    Reading("temperature", 1, 20.0),
    Reading("humidity", 2, 50.0),
    Reading("light", 3, 0.0),
    Reading("co2", 4, 900.0),
    Reading("temperature", 11, 70.0),
    Reading("light", 13, 300.0),
    Reading("co2", 14, 950.0),
]
WATER = [Reading("flow", 1, 100.0), Reading("flow", 2, 110.0)]


def stored(updates: checking.Updates) -> list[dict]:
    return [
        {"channels": {name: {"current-value": v} for name, v in each.items()}, "lastUpdate": at}
        for at, each in updates.items()
    ]


def test_what_a_few_readings_make_of_the_streams() -> None:
    """Worked out by hand."""
    found = expected(ROOM, WATER)

    assert found["fahrenheit", "fahrenheit"] == {1: {"temperature": 68.0}}  # 70 is filtered
    assert list(found["dew_point", "dew_point"]) == [2, 11]
    assert found["dew_point", "dew_point"][2] == {"temperature": 9.26}
    assert list(found["comfort", "scores"]) == [1, 2, 4, 11, 14]
    assert found["comfort", "comfort"][4] == {"mean": pytest.approx((100 + 100 + 90) / 3)}
    assert found["occupied", "occupied"] == {
        4: {"occupied": False, "co2": 900.0, "dark": 1},
        14: {"occupied": True, "co2": 950.0, "dark": 0},
    }
    assert found["water_main", "watch"][2] == {
        "anomaly": True,
        "flow": 110.0,
        "ema": pytest.approx(100.25),
        "deviation": pytest.approx(1.2),
    }


def test_every_stream_that_is_shown_is_expected() -> None:
    found = expected(list(series.room()), list(series.water()))

    assert all(len(found[each.document, each.stream]) > 200 for each in (*SHOWN, *BANDS))
    for each in BANDS:
        anomalies, band = found[each.document, each.anomalies], found[each.document, each.stream]
        assert 0 < len(anomalies) < len(band) == len(found[each.document, "smoothed"]) - 23


def test_equal_streams_do_not_differ() -> None:
    wanted = {1: {"v": 0.1 + 0.2, "b": True}, 2: {"v": 3, "b": False}}

    assert differences(wanted, stored({1: {"v": 0.3, "b": True}, 2: {"v": 3.0, "b": False}})) == []
    assert differences(wanted, stored({**wanted, 3: {"v": 1, "b": True}})) == []  # sent by hand


@pytest.mark.parametrize(
    "found",
    [
        {1: {"v": 1.0}},  # one is lost
        {1: {"v": 1.0}, 2: {"v": 2.001}},
        {1: {"v": 1.0}, 2: {"v": True}},
        {1: {"v": 1.0}, 2: {"w": 2.0}},
        {0: {"v": 1.0}, 1: {"v": 1.0}, 2: {"v": 2.0}},  # one too many
    ],
)
def test_each_difference_is_told(found: checking.Updates) -> None:
    assert len(differences({1: {"v": 1.0}, 2: {"v": 2.0}}, stored(found))) == 1


def test_many_differences_are_told_in_a_few_lines() -> None:
    wanted = {at: {"v": 1} for at in range(1, 100)}

    assert differences(wanted, [])[-1] == "and 89 more"


@pytest.mark.parametrize(("right", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_all_was_right(monkeypatch, right: bool, code: int) -> None:
    monkeypatch.setattr("sys.argv", ["demonstration", "--last"])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(demonstration.found, "of", lambda settings: settings)
    monkeypatch.setattr(demonstration.scenario, "play", lambda *_: right)

    assert demonstration.main() == code
