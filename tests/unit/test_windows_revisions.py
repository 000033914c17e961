"""Windows that come out before their end, and after it again: their edges."""

from __future__ import annotations

import json
from typing import Any

import pytest
from windowed_composite import BASE, Composite, windows

from sandbox.revisions import Revision, revision_of, without_revision
from servioticy.domain.evaluators.operators import Answer
from servioticy.domain.evaluators.windows.cutting import MAX_EARLY
from servioticy.domain.evaluators.windows.head import HEAD, read_head

TUMBLING = {"type": "tumbling", "size": "10s"}
LATE = TUMBLING | {"lateness": "20s"}


def told(answer: Answer) -> list[Revision | None]:
    return [revision_of(each.document) for each in answer.outputs]


def test_each_update_lets_its_window_out_early() -> None:
    c = Composite(TUMBLING | {"emit": "updates"})
    first, second = c.put(3), c.put(9)
    assert windows(first) == [(0, 10, 1)]
    assert windows(second) == [(0, 10, 2)]
    assert first.outputs[0].timestamp == second.outputs[0].timestamp == BASE + 9
    assert told(first) == [Revision(1, early=True)]
    assert told(second) == [Revision(2, early=True)]
    (air,) = json.loads(second.outputs[0].document)["windows"]
    assert air["early"] is True

    third = c.put(12)
    assert windows(third) == [(0, 10, 2), (10, 20, 1)], "what has ended first"
    assert told(third) == [None, Revision(1, early=True)]


def test_early_results_come_every_so_often_where_something_has_come() -> None:
    c = Composite(TUMBLING | {"size": "40s", "emit": {"every": "5s"}})
    assert not c.put(1).outputs
    assert c.due == 6
    assert not c.put(3).outputs
    assert windows(c.tick(6)) == [(0, 40, 2)]
    assert windows(c.tick(11)) == [], "nothing has come"
    assert windows(c.put(13)) == [(0, 40, 3)], "it is long ago"
    assert not c.put(14).outputs
    assert c.due == 18


def test_an_update_lets_all_open_windows_out_that_it_is_in() -> None:
    c = Composite({"type": "hopping", "size": "6s", "every": "2s", "emit": "updates"})
    assert windows(c.put(3)) == [(-2, 4, 1), (0, 6, 1), (2, 8, 1)]
    answer = c.put(4)
    assert windows(answer) == [(-2, 4, 1), (0, 6, 2), (2, 8, 2), (4, 10, 1)]
    assert [each and each.early for each in told(answer)] == [None, True, True, True]


def test_sessions_come_out_early_as_they_are() -> None:
    c = Composite({"type": "session", "gap": "10s", "emit": "updates"})
    assert windows(c.put(0)) == [(0, 10, 1)]
    assert windows(c.put(15, at=15)) == [(0, 10, 1), (15, 25, 1)]
    assert windows(c.put(22)) == [(15, 32, 2)]


def test_what_is_late_makes_a_revision() -> None:
    c = Composite(LATE)
    c.put(3)
    assert told(c.put(12)) == [None]
    answer = c.put(5)
    assert windows(answer) == [(0, 10, 2)]
    assert told(answer) == [Revision(2, early=False)]
    assert answer.outputs[0].timestamp == BASE + 9
    (air,) = json.loads(answer.outputs[0].document)["windows"]
    assert "early" not in air
    assert told(c.put(6)) == [Revision(3, early=False)]


def test_a_window_takes_in_what_is_late_until_the_lateness_is_over() -> None:
    c = Composite(LATE)
    c.put(3)
    c.put(12)
    assert windows(c.put(29)) == [(10, 20, 1)]
    assert windows(c.put(5)) == [(0, 10, 2)], "the watermark is at 29"
    c.put(30)
    answer = c.put(6)
    assert answer.kind == "late"
    assert not answer.outputs
    assert windows(c.put(15)) == [(10, 20, 2)], "and the next one stays open"


def test_what_is_over_is_given_up_though_nothing_is_sent() -> None:
    c = Composite(LATE | {"idle": "5s"})
    c.put(3)
    assert windows(c.tick(10)) == [(0, 10, 1)]
    assert c.due == 30
    assert len(c.entries) == 2
    assert not c.tick(30).outputs
    assert list(c.entries) == [HEAD]
    assert c.due is None
    assert c.put(5, at=31).kind == "late"


def test_only_windows_that_are_not_over_are_revised() -> None:
    hopping = {"type": "hopping", "size": "6s", "every": "2s", "lateness": "3s"}
    c = Composite(hopping)
    c.put(3)
    assert windows(c.put(9)) == [(-2, 4, 1), (0, 6, 1), (2, 8, 1)]
    answer = c.put(5)
    assert windows(answer) == [(2, 8, 2)], "6 and 3 are 9: that one is over"


def test_a_version_that_lets_windows_out_otherwise_keeps_them_open() -> None:
    c = Composite(TUMBLING)
    c.put(3)
    c.be(TUMBLING | {"emit": "updates", "lateness": "20s"})
    answer = c.put(4)
    assert answer.kind != "abandoned"
    assert windows(answer) == [(0, 10, 2)]


def test_what_was_over_stays_so_when_a_version_waits_longer() -> None:
    """What was in it is given up: it would be told of what is late alone."""
    c = Composite(TUMBLING)
    c.put(3)
    c.put(12)
    c.be(LATE)
    assert c.put(5).kind == "late"


@pytest.mark.parametrize("emit", ["updates", {"every": "1s"}])
def test_early_results_are_bounded_and_the_others_come_by_and_by(emit: Any) -> None:
    c = Composite(
        {"type": "hopping", "size": "100s", "every": "1s", "emit": emit},
        code="air.updates",
    )
    many: list[tuple[int, int, int]] = []
    text = "x" * 5_000
    for at in range(3):
        many += windows(c.put(at, text, at=at))
    for _ in range(300):
        if c.due is None or c.due > 5:
            break
        answer = c.tick(c.due)
        assert sum(len(each.document) for each in answer.outputs) <= 2 * MAX_EARLY
        many += windows(answer)
    newest = {end: count for _begin, end, count in many}
    assert newest == {
        end: sum(end - 100 <= at < end for at in range(3)) for end in range(3, 103)
    } | {1: 1, 2: 2}
    assert not read_head(c.entries[HEAD][0]).early


def test_status_tells_what_is_open_not_what_waits_for_late_updates() -> None:
    c = Composite(LATE)
    c.put(3)
    c.put(12)
    assert c.told()["open"] == [{"start": BASE + 10, "end": BASE + 20}]


def test_a_revision_is_what_stands_behind_the_timestamp() -> None:
    assert revision_of(b'{"channels":{},"lastUpdate":5}') is None
    assert revision_of(b'{"channels":{"revision":7},"lastUpdate":5}') is None
    assert revision_of(b'{"lastUpdate":5,"revision":7}') == Revision(7, early=False)
    assert revision_of(b'{"lastUpdate":5,"revision":7,"early":true}') == Revision(7, early=True)
    assert revision_of(b'{"t":",\\"revision\\":7}"}') is None
    retracted = b'{"lastUpdate":5,"revision":7,"retracted":true}'
    assert revision_of(retracted) == Revision(7, early=False, retracted=True)
    assert without_revision(retracted) == b'{"lastUpdate":5}'
    assert revision_of(b'{"lastUpdate":5,"retracted":true}') is None
    assert revision_of(b"") is None


def test_windows_that_were_out_stay_so_when_others_are_in_force() -> None:
    """Or late updates alone would be told in the place of a good result."""
    c = Composite(LATE)
    c.put(3)
    c.put(4)
    assert windows(c.put(12)) == [(0, 10, 2)]
    c.be(LATE, "air.quantile('v', 0.5)")
    assert c.put(13).kind == "abandoned"
    for at in (5, 6, 5):
        answer = c.put(at)
        assert (answer.kind, list(answer.outputs)) == ("late", [])
    assert windows(c.put(24)) == [(10, 20, 1)]


def test_what_was_out_in_another_unit_is_out() -> None:
    c = Composite(TUMBLING)
    c.put(3)
    c.put(12)
    assert windows(c.tick(90)) == [(10, 20, 1)]
    assert read_head(c.entries[HEAD][0]).closed == BASE + 20
    c.put_ms(95)
    assert read_head(c.entries[HEAD][0]).closed == (BASE + 20) * 1000
    assert c.put_ms(15).kind == "late"


def test_a_large_window_does_not_come_out_early() -> None:
    """All of it would be read and merged with each update."""
    window = {"type": "tumbling", "size": "10000s", "emit": "updates"}
    c = Composite(window, code="air.by('room')")
    assert windows(c.put(1, room="small")) == [(0, 10_000, 1)]
    number = 0
    while c.put(2 + number, room=f"{number}" * 20).outputs:
        number += 1
        assert number < 5_000
    assert number > 100
    assert not read_head(c.entries[HEAD][0]).early
    assert windows(c.put(10_000)) == [(0, 10_000, number + 2), (10_000, 20_000, 1)]
