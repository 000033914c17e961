"""The operator of windows, one computation after the other: its edges."""

from __future__ import annotations

import json

import pytest
from windowed_composite import BASE, Composite, windows

from servioticy.domain.evaluators.operators import Ends
from servioticy.domain.evaluators.windows.head import HEAD


def test_a_tumbling_window_comes_out_when_event_time_has_passed_its_end() -> None:
    c = Composite({"type": "tumbling", "size": "10s"})
    assert c.put(3).kind == "collected"
    assert not c.put(9, 5).outputs
    answer = c.put(10)

    assert windows(answer) == [(0, 10, 2)]
    assert answer.outputs[0].timestamp == BASE + 9
    (air,) = json.loads(answer.outputs[0].document)["windows"]
    assert (air["sum"], air["max"], air["first"], air["last"]) == (
        {"v": 6},
        {"v": 5},
        {"v": 1},
        {"v": 5},
    )


def test_what_is_late_is_told_and_counted_in_no_window() -> None:
    c = Composite({"type": "tumbling", "size": "10s"})
    c.put(3)
    assert windows(c.put(25)) == [(0, 10, 1)]
    answer = c.put(9)
    assert (answer.kind, answer.message) == (
        "late",
        f"all windows with updates of {BASE + 9} have ended",
    )
    assert windows(c.put(30)) == [(20, 30, 1)], "and the empty one between does not come out"


def test_what_is_sent_again_at_once_counts_once() -> None:
    c = Composite({"type": "tumbling", "size": "10s"})
    c.put(3, 5)
    answer = c.put(3, 5)
    assert (answer.kind, answer.message) == (
        "stale",
        f"it repeats what its stream has of {BASE + 3}",
    )
    (output,) = c.put(10).outputs
    (air,) = json.loads(output.document)["windows"]
    assert (air["count"], air["sum"]) == (1, {"v": 5})


def test_a_delay_waits_for_what_is_late() -> None:
    c = Composite({"type": "tumbling", "size": "10s", "delay": "5s"})
    c.put(3)
    assert windows(c.put(14)) == []
    assert windows(c.put(8)) == []
    assert windows(c.put(15)) == [(0, 10, 2)]


def test_the_slowest_stream_holds_back_and_only_as_long_as_it_sends() -> None:
    c = Composite({"type": "tumbling", "size": "10s", "idle": "30s"}, "a", "b")
    c.put(1, member="b")
    assert windows(c.put(12, member="a")) == []
    assert c.told()["held-back-by"] == "b"
    assert c.told()["open"] == [
        {"start": BASE, "end": BASE + 10},
        {"start": BASE + 10, "end": BASE + 20},
    ]
    assert c.due == 31
    assert windows(c.tick(31)) == [(0, 10, 1)], "it is silent, and a is what counts"
    assert windows(c.put(40, member="a")) == [(10, 20, 1)]


def test_one_that_never_sent_is_waited_for_since_the_first_update() -> None:
    c = Composite({"type": "tumbling", "size": "10s", "idle": "30s"}, "a", "b")
    c.put(1, member="a", at=100)
    c.put(29, member="a", at=129)
    assert c.due == 130
    assert windows(c.put(29, member="a", at=130)) == [(0, 10, 1)]


def test_where_all_are_silent_time_goes_on_with_the_log() -> None:
    c = Composite({"type": "tumbling", "size": "10s", "idle": "5s", "delay": "2s"})
    c.put(3)
    assert c.due == 8, "from then on it is silent"
    assert windows(c.tick(8)) == []
    assert c.due == 12
    assert windows(c.tick(12)) == [(0, 10, 1)]
    assert c.due is None, "an idle stream stays idle"
    assert list(c.entries) == [HEAD]


def test_a_fast_clock_makes_nobody_late() -> None:
    c = Composite({"type": "tumbling", "size": "10s"}, "a", "b")
    c.put(1, member="a", at=1)
    c.put(500, member="b", at=2)
    assert windows(c.put(2, member="a", at=3)) == []
    c = Composite({"type": "tumbling", "size": "10s"})
    c.put(500, at=2)
    assert c.put(3, at=3).kind == "collected", "its time is no later than that of the log"


def test_hopping_windows_share_panes() -> None:
    c = Composite({"type": "hopping", "size": "20s", "every": "10s"})
    c.put(5)
    assert windows(c.put(15)) == [(-10, 10, 1)]
    assert len(c.entries) == 3
    assert windows(c.put(41)) == [(0, 20, 2), (10, 30, 1)]


def test_a_sliding_window_comes_out_at_each_update() -> None:
    c = Composite({"type": "sliding", "size": "10s"})
    assert windows(c.put(1)) == []
    assert windows(c.put(5)) == [(-8, 2, 1)]
    assert windows(c.put(11)) == [(-4, 6, 2)]
    assert windows(c.put(12)) == [(2, 12, 2)], "after 1, up to 11"


def test_sessions_join_and_end_by_a_gap_or_when_they_are_long_enough() -> None:
    c = Composite({"type": "session", "gap": "10s", "max": "30s", "delay": "20s"})
    c.put(0)
    c.put(14)
    assert len(c.told()["open"]) == 2
    c.put(7)
    assert c.told()["open"] == [{"start": BASE, "end": BASE + 24}]
    c.put(23)
    c.put(31)
    assert c.told()["open"] == [
        {"start": BASE, "end": BASE + 30},
        {"start": BASE + 31, "end": BASE + 41},
    ]
    assert windows(c.put(100)) == [(0, 30, 4), (31, 41, 1)]


def test_counts_go_by_the_log_and_come_out_at_once() -> None:
    c = Composite({"type": "count", "size": 4, "every": 2})
    found = [windows(c.put(each)) for each in (1, 2, 3, 4, 5, 6)]
    assert [len(each) for each in found] == [0, 0, 0, 1, 0, 1]
    assert found[-1] == [(3, 7, 4)]
    assert c.put(5).kind == "late", "it may have been counted"
    assert c.told()["open"] == [{"updates-missing": 2}]


@pytest.mark.parametrize(
    "kind", [{"type": "tumbling", "size": "10s"}, {"type": "session", "gap": "10s"}]
)
def test_no_window_ends_with_what_was_erased(kind: dict[str, str]) -> None:
    """Though nothing comes any more."""
    c = Composite(kind)
    c.read_as = 4
    c.put(1)
    c.put(2)
    c.read_as = 9
    answer = c.tick(70)
    assert (answer.kind, answer.outputs) == ("abandoned", [])
    assert answer.message == "1 panes with updates of a stream that was erased"
    assert set(c.entries) == {HEAD}
    c.put(81)
    assert [each for *_, each in windows(c.tick(200))] == [1]


def test_windows_without_an_end_begin_anew_where_a_stream_was_erased() -> None:
    count, whole = Composite({"type": "count", "size": 3}), Composite({"type": "global"})
    for c in (count, whole):
        c.read_as = 4
        c.put(1)
        c.put(2)
        c.read_as = 9
    assert count.put(3).kind == "abandoned"
    assert count.put(4).kind == "collected"
    assert [each for *_, each in windows(count.put(5))] == [3]
    assert [each for *_, each in windows(whole.put(3))] == [1]


def test_a_global_window_is_all_that_ever_came() -> None:
    c = Composite({"type": "global"})
    assert windows(c.put(5)) == [(5, 6, 1)]
    assert windows(c.put(3)) == [(3, 6, 2)]
    assert [each.timestamp - BASE for each in c.put(4).outputs] == [7], "newer than the one before"


def test_a_window_by_arrival_is_cut_by_the_logs_time() -> None:
    c = Composite({"type": "tumbling", "size": "10s", "time": "arrival"})
    c.put(5000, at=3)
    assert c.due == 10
    (output,) = c.tick(10).outputs
    assert output.timestamp == (BASE + 10) * 1000 - 1


def test_calendar_days_have_their_hours() -> None:
    """Berlin's 29 March 2026 has 23."""
    c = Composite({"type": "tumbling", "size": "1d", "timezone": "Europe/Berlin"})
    noon = 1_774_782_000 - BASE  # 29 March, 13:00
    c.put(noon, at=noon)
    (output,) = c.put(noon + 86_400).outputs
    (air,) = json.loads(output.document)["windows"]
    assert air["end"] - air["start"] == 23 * 3600


def test_aggregates_by_a_channels_value() -> None:
    c = Composite({"type": "tumbling", "size": "400s"}, code="function(a){a.by('sensor')}")
    for number in range(300):
        c.put(1 + number, number, sensor=f"s{number % 150}", at=1)
    (output,) = c.put(400).outputs
    (air,) = json.loads(output.document)["windows"]
    assert len(air["by"]["sensor"]) == 150
    assert air["by"]["sensor"]["s7"]["sum"] == {"v": 7 + 157}
    assert all(key.startswith((b"0.", HEAD)) for key in c.entries)
    c.put(800)
    assert len(c.entries) == 2, "all buckets are given up"


def test_the_updates_themselves_come_in_order_or_not_at_all() -> None:
    c = Composite({"type": "hopping", "size": "20s", "every": "10s"}, code="a.updates")
    c.put(12, 1, at=12)
    c.put(11, 2, at=12)
    c.put(21, 3)
    (output,) = c.put(30).outputs
    (air,) = json.loads(output.document)["windows"]
    assert [each["channels"]["v"]["current-value"] for each in air["updates"]] == [2, 1, 3]

    c.put(31, "x" * 30_000)
    c.put(32, "x" * 30_000)
    found = [json.loads(each.document)["windows"][0] for each in c.put(60).outputs]
    assert [each["updates"] for each in found] == [None, None]
    assert [each["count"] for each in found] == [4, 3]
    assert all(len(value) < 65_536 for value, _due in c.entries.values())
    c.put(200)
    c.put(300)
    assert len(c.entries) == 3


@pytest.mark.parametrize("timestamp", [5, 10**10])
def test_what_is_no_time_is_an_error(timestamp: int) -> None:
    c = Composite({"type": "tumbling", "size": "10s"})
    with pytest.raises(Ends, match="no time of these days: send seconds, milliseconds"):
        c.put(timestamp - BASE, at=0)


def test_mixed_units_are_an_error() -> None:
    c = Composite({"type": "tumbling", "size": "10s"})
    c.put(1)
    with pytest.raises(Ends, match=r"this one is in milliseconds, .* are open in seconds;"):
        c.put(BASE * 1000 - BASE, at=2)


def test_a_duration_below_the_unit_is_an_error() -> None:
    c = Composite({"type": "tumbling", "size": "500ms"})
    with pytest.raises(Ends, match="500 ms"):
        c.put(1)


def test_another_window_gives_up_those_that_are_open() -> None:
    c = Composite({"type": "tumbling", "size": "10s"})
    c.put(1)
    c.put(2)
    c.be({"type": "count", "size": 2})
    answer = c.put(3)
    assert (answer.kind, answer.message) == (
        "abandoned",
        "1 panes of a version with other windows",
    )
    assert sorted(c.entries) == [b"1.0.0", HEAD]
    assert windows(c.put(4)) == [(3, 5, 2)]
    c.be({"type": "count", "size": 2}, code="function(a){a.quantile('v', 0.5)}")
    assert c.put(5).kind == "abandoned", "what was not kept cannot be told"


def test_the_same_window_stays_open_whatever_the_code() -> None:
    c = Composite({"type": "tumbling", "size": "10s"}, code="function(a){a.mean('v')}")
    c.put(1)
    c.be({"type": "tumbling", "size": "10s"}, code="function(a){a.max('v')}")
    assert windows(c.put(11)) == [(0, 10, 1)]
