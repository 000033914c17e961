"""The operator of windows, one computation after the other: its edges and its bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from windowed_composite import BASE, Composite

from servioticy.domain.evaluators.operators import Answer, Ends
from servioticy.domain.evaluators.windows import contents, cutting
from servioticy.domain.evaluators.windows.cutting import MAX_DROPPED
from servioticy.domain.evaluators.windows.head import HEAD, MAX_PANES
from servioticy.domain.evaluators.windows.operator import MAX_CLOSED


def windows(answer: Answer) -> list[tuple[int, int, int]]:
    """Beginning, end and count of what came out, all inputs together."""
    found = []
    for output in answer.outputs:
        each = json.loads(output.document)["windows"]
        assert output.timestamp == json.loads(output.document)["lastUpdate"]
        found.append(
            (each[0]["start"] - BASE, each[0]["end"] - BASE, sum(one["count"] for one in each))
        )
    return found


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
    """With what it said first: the former is in sums that cannot be undone."""
    c = Composite({"type": "tumbling", "size": "10s"})
    c.put(3, 5)
    answer = c.put(3, 7)
    assert (answer.kind, answer.message) == (
        "stale",
        f"it repeats the newest update of its stream, {BASE + 3}",
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


def test_windows_that_exceed_one_computation_go_on_at_once() -> None:
    c = Composite({"type": "tumbling", "size": "1s", "idle": "1h"}, "a", "b")
    c.put(0, member="b")
    for each in range(MAX_CLOSED + 20):
        c.put(each, member="a")
    assert len(c.put(1000, member="b").outputs) == MAX_CLOSED
    assert c.due == pytest.approx(1000.001), "at once"
    assert len(c.tick(1000).outputs) == 19


def test_panes_are_bounded_and_given_up_by_and_by() -> None:
    c = Composite({"type": "sliding", "size": "3h", "delay": "1h"})
    with pytest.raises(Ends, match=f"more than {MAX_PANES} panes"):
        for each in range(MAX_PANES + 1):
            c.put(each)
    assert len(c.told()["open"]) == 20
    kept = len(c.entries)
    for _ in range(100):
        before = len(c.entries)
        c.tick(20_000)
        assert before - len(c.entries) <= MAX_DROPPED
        if c.due is None:
            break
    assert (kept, len(c.entries)) == (MAX_PANES + 1, 1)


def test_a_window_of_too_many_timestamps_is_an_error_and_the_next_ones_come() -> None:
    c = Composite({"type": "sliding", "size": "1200s"})
    kinds = [c.put(each).kind for each in range(1100)]
    assert kinds.count("error") == 99
    assert windows(c.put(3000)) == []
    assert windows(c.put(3001)) == [(1801, 3001, 1)]


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


def test_many_members_are_kept_by_pages() -> None:
    names = [f"so/{number}" for number in range(100)]
    c = Composite({"type": "tumbling", "size": "10s"}, *names)
    for name in names:
        c.put(1, member=name)
    outputs = [windows(c.put(11, member=name)) for name in names]
    assert [len(each) for each in outputs] == [0] * 99 + [1]
    assert sum(count for each in outputs for *_, count in each) == 100


def told_of(answer: Answer) -> list[tuple[int, str, bool, int]]:
    """When, of which stream, whether it is silent, and how many are."""
    found = []
    for output in answer.outputs:
        (each,) = [w for w in json.loads(output.document)["windows"] if w is not None]
        found.append((output.timestamp - BASE, each["stream"], each["silent"], each["count"]))
    return found


def test_silence_is_told_once_and_so_is_its_end() -> None:
    c = Composite({"type": "silence", "after": 10_000}, "a", "b", "never")
    assert told_of(c.put(0, member="a")) == []
    assert told_of(c.put(7, member="b")) == []
    assert c.due == 10
    assert told_of(c.tick(10)) == [(10, "a", True, 1)]
    assert c.due == 17
    assert told_of(c.put(15, member="b")) == []
    assert told_of(c.tick(17)) == []
    assert c.due == 25
    assert told_of(c.put(18, member="a")) == [(18, "a", False, 0)]
    assert told_of(c.tick(25)) == [(25, "b", True, 1)]
    assert c.due == 28
    assert told_of(c.tick(28)) == [(28, "a", True, 2)]
    assert c.due is None, "an idle stream stays idle"
    assert told_of(c.put(40, member="b")) == [(40, "b", False, 1)]
    assert c.due == 50
    assert c.told() == {"open": [], "updates": 5, "silent": 1}


def test_many_fall_silent_at_once() -> None:
    names = [f"so/{number}" for number in range(MAX_CLOSED + 30)]
    c = Composite({"type": "silence", "after": 10_000}, *names)
    for name in names:
        c.put(0, member=name)
    first = told_of(c.tick(10))
    assert c.due == pytest.approx(10.001), "at once"
    second = told_of(c.tick(10))
    assert [len(first), len(second)] == [MAX_CLOSED, 30]
    assert [at for at, *_ in first + second] == list(range(10, 140)), "each later than the last"
    assert c.due is None


def test_sessions_that_end_together_have_more_entries_than_a_computation_may_change() -> None:
    c = Composite({"type": "session", "gap": "10s", "idle": "1h"}, "a", "b", code='air.by("k")')
    c.put(0, member="b")
    for session in range(50):
        for n in range(40):
            c.put(session * 100 + n, k=n, at=1)

    answer = c.put(100_000, member="b")

    assert [count for *_, count in windows(answer)] == [41, *[40] * 49]
    while c.due is not None and c.due < 100_010:
        c.tick(c.due)
    assert all(key.startswith((b"w", b"0.")) for key in c.entries)
    assert len(c.entries) < 5, "what they had is given up by and by"


def test_a_window_of_counts_that_gives_up_a_thousand_panes() -> None:
    c = Composite({"type": "count", "size": 1000, "every": 999})
    answers = [c.put(n) for n in range(2000)]

    assert [n for n, each in enumerate(answers) if each.outputs] == [999, 1998]
    assert len(c.entries) < 1100


@pytest.mark.parametrize(
    "window",
    [
        {"type": "tumbling", "size": "100s"},
        {"type": "session", "gap": "10s", "max": "100s"},
        {"type": "count", "size": 60},
    ],
)
def test_a_window_by_too_many_values_is_an_error_and_the_next_ones_come(
    window: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "MAX_KEYS", 50)
    c = Composite(window, code='air.by("k")')
    answers = [c.put(n, k=n) for n in range(60)]
    answers += [c.put(200 + n, k=0) for n in range(60)]
    answers.append(c.put(400, k=0))

    assert [each.message for each in answers if each.kind == "error" and each.message] == [
        "a window has aggregates by at most 50 values of a channel"
    ]
    assert [count for each in answers for *_, count in windows(each)] == [60]


def test_too_many_channels_are_an_error_of_the_update_that_brings_them() -> None:
    """And of nobody else's: what is raised otherwise leaves a whole update uncomputed."""
    c = Composite({"type": "hopping", "size": "20s", "every": "10s"}, "a", "b")
    c.put(1, **{f"x{n}": n for n in range(600)})
    with pytest.raises(Ends, match="more than 1000 channels"):
        c.put(2, member="b", **{f"y{n}": n for n in range(1001)})
    c.put(11, **{f"z{n}": n for n in range(600)})

    c.put(30, member="b")
    answers = [c.put(30), c.tick(30.1)]

    assert answers[0].message == "a window has more than 1000 channels"
    assert windows(answers[1]) == [(10, 30, 1)]


def test_what_is_kept_of_one_window_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MAX_WINDOW_BYTES", 5000)
    c = Composite({"type": "hopping", "size": "20s", "every": "10s"}, code="air.updates")
    for n in range(20):
        c.put(n, "x" * 300)
    answers = [c.put(20), c.put(60), c.tick(60.1)]

    assert [windows(each) for each in answers] == [[], [(10, 30, 11), (20, 40, 1)], []]
    assert answers[0].message == "more than 5000 bytes are kept of a window"


def test_several_windows_that_are_large_come_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cutting, "MAX_READ", 200)
    c = Composite({"type": "tumbling", "size": "10s", "idle": "1h"}, "a", "b")
    c.put(0, member="b")
    for n in range(10):
        c.put(n * 10, at=0)
    c.put(200, member="b")
    found = windows(c.put(200))
    assert 0 < len(found) < 10
    while c.due is not None and c.due <= 201:
        found += windows(c.tick(c.due))

    assert [begin for begin, *_ in found] == list(range(0, 100, 10))


def test_what_is_due_at_once_is_due_at_another_time() -> None:
    """The log has been told of the time that has come: it is told of the same after a minute."""
    c = Composite({"type": "tumbling", "size": "1s", "idle": "1h"}, "a", "b")
    for n in range(150):
        c.put(n, at=n)
    due = c.due
    assert due is not None

    c.tick(due)

    assert c.due is not None
    assert c.due > due


def test_sessions_that_become_one_ask_for_all_that_they_lack_together() -> None:
    c = Composite({"type": "session", "gap": "10s"}, "a", "b", code='air.by("k")')
    c.put(0, member="b")
    for n in range(50):
        c.put(n, k=f"x{n}", at=1)
        c.put(60 + n, k=f"y{n}", at=1)
    asked = c.asked

    c.put(55, k="z", at=1)

    assert c.asked - asked < 8
    assert [each["end"] - each["start"] for each in c.told()["open"]] == [119]


@pytest.mark.parametrize(
    "window", [{"type": "tumbling", "size": "10s"}, {"type": "session", "gap": "10s"}]
)
def test_a_clock_that_is_wrong_leaves_room_for_updates_of_now(window: dict[str, Any]) -> None:
    """Else no window would come for as long as it is ahead, which may be years."""
    c = Composite(window, "a", "wrong")
    c.put(0)
    with pytest.raises(Ends, match=r"more than 500 .* after the log's time are open"):
        for n in range(2000):
            c.put(10_000 + n * 100, member="wrong", at=1)

    c.put(5)

    assert windows(c.put(100))[0][2] == 2
