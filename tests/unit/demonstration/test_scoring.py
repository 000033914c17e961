"""How the demonstration judges itself."""

from __future__ import annotations

from demonstration import scoring, series
from demonstration.scoring import HOUR, Score

FLOW = [(hour * HOUR, 24.0 if 50 <= hour < 60 else 100.0) for hour in range(100)]


def test_an_alarm_in_a_known_segment_is_a_hit_one_elsewhere_is_false() -> None:
    alarms = [(hour * HOUR, hour in (52, 53, 80)) for hour in range(100)]

    assert scoring.water_score(FLOW, alarms) == Score(known=1, found=1, false_alarms=1)


def test_silence_finds_nothing() -> None:
    assert scoring.water_score(FLOW, []) == Score(known=1, found=0, false_alarms=0)


def test_the_water_main_has_three_low_segments_and_a_peak() -> None:
    """As river's description of the series says."""
    flow = [(each.timestamp, each.value) for each in series.water()]

    assert scoring.water_score(flow, []).known == 4


def test_rows_count_that_at_least_two_people_marked() -> None:
    marks = {"a": [10, 50], "b": [12, 90], "c": [11]}

    assert scoring.agreed(marks) == [11]


def test_changes_near_a_mark_are_hits() -> None:
    times = list(range(0, 1000, 10))
    states = [(at, at >= 120) for at in times if at != 0]
    annotations = {"a": [10], "b": [12]}

    assert scoring.occupied_score(times, annotations, states) == Score(1, 1, 0)
