"""Updates that come again, of a timestamp that their stream has already."""

from __future__ import annotations

import json
from typing import Any

import pytest
from windowed_composite import BASE, Composite, windows

from sandbox.revisions import revision_of
from servioticy.domain.evaluators.operators import Answer
from servioticy.domain.evaluators.windows import again, seen

TUMBLING = {"type": "tumbling", "size": "10s"}
LATE = TUMBLING | {"lateness": "20s"}


def of(answer: Answer) -> dict[str, Any]:
    """What the only window tells of its only input."""
    (output,) = answer.outputs
    (air,) = json.loads(output.document)["windows"]
    assert isinstance(air, dict)
    return air


@pytest.mark.parametrize("at", [3, 5, 8])
def test_an_update_of_an_older_time_takes_the_place_of_the_former(at: int) -> None:
    c = Composite(TUMBLING, code="air.quantile('v', 0.5) + air.updates + air.by('room')")
    for each in (3, 5, 8):
        c.put(each, each, room="first")
    assert c.put(at, 1, room="again").kind == "collected"
    air = of(c.put(10))

    values = [1 if each == at else each for each in (3, 5, 8)]
    assert air["count"] == 3
    assert air["sum"] == {"v": sum(values)}
    assert (air["min"], air["max"]) == ({"v": 1}, {"v": max(values)})
    assert (air["first"]["v"], air["last"]["v"]) == (values[0], values[-1])
    found = [each["channels"]["v"]["current-value"] for each in air["updates"]]
    assert found == values
    counts = {room: each["count"] for room, each in air["by"]["room"].items()}
    assert counts == {"first": 2, "again": 1}


def test_one_that_says_the_same_changes_nothing_and_reads_one_row() -> None:
    c = Composite(TUMBLING)
    for at in (3, 5, 8):
        c.put(at)
    entries, asked = dict(c.entries), c.asked
    answer = c.put(5)

    assert (answer.kind, answer.message) == (
        "stale",
        f"it repeats what its stream has of {BASE + 5}",
    )
    assert c.asked == asked + 2, "what every computation looks at, and the former"
    assert c.entries.keys() == entries.keys()
    assert of(c.put(10))["count"] == 3


def test_what_comes_in_order_asks_no_history() -> None:
    c = Composite(TUMBLING, "a", "b")
    for at in (1, 3, 5, 7):
        c.put(at, member="a")
        c.put(at - 1, member="b", at=at)
    wanted: list[Any] = []
    c._past = wanted.append  # type: ignore[method-assign]
    c.put(9, member="a")
    c.put(8, member="b")

    assert not wanted


def test_what_changes_a_result_that_is_out_is_a_revision_with_a_greater_number() -> None:
    c = Composite(LATE)
    c.put(3, 3)
    c.put(5, 5)
    assert windows(c.put(12)) == [(0, 10, 2)]
    answer = c.put(3, 30)
    assert of(answer)["sum"] == {"v": 35}
    assert [revision_of(each.document) for each in answer.outputs] == [(3, False, False)]
    again_ = c.put(5, 50)
    assert of(again_)["sum"] == {"v": 80}
    assert [revision_of(each.document) for each in again_.outputs] == [(4, False, False)]
    last = c.put(7, 7)
    assert (of(last)["count"], of(last)["sum"]) == (3, {"v": 87})
    assert [revision_of(each.document) for each in last.outputs] == [(5, False, False)]


def test_the_former_result_is_taken_back_before_it() -> None:
    c = Composite(LATE | {"revisions": "retract"})
    c.put(3, 3)
    c.put(12)
    outputs = c.put(3, 4).outputs
    sums = [json.loads(each.document)["windows"][0]["sum"]["v"] for each in outputs]
    marks = [revision_of(each.document) for each in outputs]
    assert sums == [3, 4]
    assert marks == [(1, False, True), (2, False, False)]


def test_an_early_result_tells_of_it() -> None:
    c = Composite(TUMBLING | {"emit": "updates"})
    c.put(3, 3)
    c.put(5, 5)
    answer = c.put(3, 4)
    assert of(answer)["sum"] == {"v": 9}
    assert [revision_of(each.document) for each in answer.outputs] == [(3, True, False)]


def test_in_hopping_windows_it_changes_those_that_it_is_in() -> None:
    c = Composite({"type": "hopping", "size": "20s", "every": "10s"})
    c.put(5, 1)
    c.put(15, 1)
    c.put(5, 7)
    sums = [json.loads(each.document)["windows"][0]["sum"]["v"] for each in c.put(60).outputs]
    assert sums == [8, 1]


def test_a_session_keeps_its_ends() -> None:
    c = Composite({"type": "session", "gap": "10s", "emit": "updates"})
    for at in (1, 4, 8):
        c.put(at, at)
    answer = c.put(1, 100)
    assert windows(answer) == [(1, 18, 3)]
    assert of(answer)["sum"] == {"v": 112}


def test_the_window_of_all_updates_counts_it_once() -> None:
    c = Composite({"type": "global"})
    c.put(1, 1)
    c.put(5, 5)
    air = of(c.put(1, 3))
    assert (air["count"], air["sum"]) == (2, {"v": 8})


@pytest.mark.parametrize("window", [LATE | {"revisions": "discard"}, {"type": "count", "size": 3}])
def test_what_cannot_be_made_again_counts_as_it_came_first(window: dict[str, Any]) -> None:
    c = Composite(window)
    for at in (1, 2, 2, 1):
        answer = c.put(at, at)
    assert answer.kind in ("stale", "late")
    assert c.told()["updates"] >= 2
    if window["type"] == "tumbling":
        assert of(c.put(12))["count"] == 2
    else:
        assert of(c.put(3))["count"] == 3


@pytest.mark.parametrize("is_expired", [False, True])
def test_a_window_of_so_many_counts_what_is_newer_whatever_history_has(is_expired: bool) -> None:
    """Rows go by the clock of whoever removes them, so what is not there may have come."""
    c = Composite({"type": "count", "size": 3})
    for at in (3, 5):
        c.put(at, at)
    if is_expired:
        del c.history["a", BASE + 3]
    c.asked = 0
    assert [c.put(at, 30).kind for at in (3, 4, 5)] == ["late", "late", "stale"]
    assert c.asked == 3, "what every computation looks at, and no history"
    air = of(c.put(6, 6))
    assert (air["count"], air["sum"]) == (3, {"v": 14})


def test_what_was_not_told_yet_is_counted_anew_where_the_rest_is_discarded() -> None:
    c = Composite(LATE | {"revisions": "discard"})
    c.put(3, 3)
    c.put(5, 5)
    assert c.put(3, 30).kind == "collected"
    told = c.put(12)
    assert of(told)["sum"] == {"v": 35}
    again_ = c.put(3, 300)
    assert (again_.kind, "has been told" in again_.message) == ("stale", True)
    late = c.put(4, 4)
    assert [revision_of(each.document) for each in late.outputs] == [(3, False, False)]
    assert of(late)["sum"] == {"v": 4}


class OfOthers(Composite):
    """A stream over windows of two streams, of which `b` is another tenant's."""

    outside = frozenset({"b"})


@pytest.mark.parametrize(
    "window",
    [
        TUMBLING,
        LATE | {"emit": "updates", "revisions": "discard"},
        {"type": "hopping", "size": "10s", "every": "5s"},
        {"type": "sliding", "size": "10s", "delay": "20s"},
        {"type": "session", "gap": "10s"},
        {"type": "global"},
    ],
)
def test_what_others_send_again_is_not_counted_twice(window: dict[str, Any]) -> None:
    """Their history is not known here, so it is not counted anew, and that is told."""
    c = OfOthers(window, "a", "b")
    for at in (2, 6, 4):
        assert c.put(at, at, member="b").kind in ("collected", "emitted", "late")
        c.put(at, at, member="a")
    entries = {key: each for key, each in c.entries.items() if key != c.head}
    answers = [c.put(at, 9, member="b") for at in (2, 4, 6)]

    assert {each.kind for each in answers} <= {"stale", "late"}
    assert "other tenants" in answers[0].message
    assert {key: each for key, each in c.entries.items() if key != c.head} == entries
    mine = c.put(4, 40, member="a")
    assert mine.kind in ("collected", "stale")


def test_of_windows_of_so_many_it_is_not_noted_what_others_have_sent() -> None:
    """They take only what is newer, and ask for nothing else."""
    c = OfOthers({"type": "count", "size": 100}, "a", "b")
    kinds = [c.put(at, at, member="b").kind for at in (2, 6, 4)]

    assert kinds == ["collected", "collected", "late"]
    assert not [key for key in c.entries if b".n" in key]


def test_where_sessions_become_one_it_is_known_of_both() -> None:
    c = OfOthers({"type": "session", "gap": "5s"}, "a", "b")
    for at in (1, 3, 9, 10):
        c.put(at, member="b")
    assert c.put(6, member="b").kind == "collected"
    assert [c.put(at, 7, member="b").kind for at in (1, 3, 6, 9, 4)] == ["stale"] * 4 + [
        "collected"
    ]
    assert windows(c.tick(100)) == [(1, 15, 6)]


def test_where_no_more_can_be_told_apart_what_is_older_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What comes in order always is."""
    monkeypatch.setattr(seen, "LEAF", 1)
    monkeypatch.setattr(seen, "MOST_LEAVES", 1)
    c = OfOthers(TUMBLING, "a", "b")
    for at in (1, 3, 8):
        assert c.put(at, member="b").kind == "collected"
    assert c.put(5, member="b").kind == "stale"
    assert sum(len(value) for key, (value, _) in c.entries.items() if b".n" in key) == 16
    assert [each for *_, each in windows(c.put(70, member="b"))] == [3]
    assert not [key for key in c.entries if b".n" in key and key.startswith(b"0.1700000000.")]


def test_more_than_so_many_are_not_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "MOST", 4)
    c = Composite(TUMBLING)
    for at in range(4):
        c.put(at, 1)
    assert c.put(1, 5).kind == "collected"
    c.put(4, 1)
    answer = c.put(1, 9)

    assert answer.kind == "stale"
    assert "more than 4 updates" in answer.message
    assert of(c.put(10))["sum"] == {"v": 9}, "the first one was replaced, the second was not"


@pytest.mark.parametrize(
    "window",
    [
        TUMBLING | {"emit": "updates"},
        {"type": "session", "gap": "5s", "emit": "updates"},
        {"type": "global"},
    ],
)
def test_nothing_is_lost_where_history_is_shorter_than_the_window(window: dict[str, Any]) -> None:
    """A stream whose updates live for five seconds, say: its pane stays as it was."""
    c = Composite(window)
    for at in (1, 3, 5, 8):
        told = c.put(at, at)
    first = of(told)
    for each in (1, 3):
        del c.history["a", BASE + each]
    entries = dict(c.entries)
    answer = c.put(5, 50)

    assert answer.kind == "stale"
    assert "history does not have all" in answer.message
    assert not answer.outputs or of(answer) == first
    assert {key: each for key, each in c.entries.items() if key != c.head} == {
        key: each for key, each in entries.items() if key != c.head
    }
    last = of(c.put(9, 9))
    assert (last["count"], last["sum"]) == (5, {"v": 1 + 3 + 5 + 8 + 9})


def test_another_input_may_have_less_of_its_history() -> None:
    """Only that one is counted anew of which an update comes again."""
    c = Composite(TUMBLING | {"emit": "updates"}, "a", "b")
    for at in (1, 3, 5):
        c.put(at, at, member="a")
        c.put(at, at, member="b")
    del c.history["b", BASE + 1]
    answer = c.put(3, 30, member="a")

    (output,) = answer.outputs
    a, b = json.loads(output.document)["windows"]
    assert (a["sum"], b["sum"]) == ({"v": 36}, {"v": 9})


def test_what_was_in_no_window_of_this_version_is_taken() -> None:
    """History has it, and the windows that are open do not."""
    c = Composite(TUMBLING)
    c.put(3)
    c.put(5)
    c.be(TUMBLING | {"size": "20s"})
    c.put(6)
    assert c.put(3, 9).kind == "collected"
    assert of(c.put(20))["sum"] == {"v": 10}
