"""What windows keep, read and change at once is bounded, and what is beyond comes later."""

from __future__ import annotations

from typing import Any

import pytest
from windowed_composite import Composite, windows

from servioticy.domain.evaluators.operators import Ends
from servioticy.domain.evaluators.windows import contents, cutting, head, timed
from servioticy.domain.evaluators.windows.operator import MAX_CLOSED


def test_windows_that_exceed_one_computation_go_on_at_once() -> None:
    c = Composite({"type": "tumbling", "size": "1s", "idle": "1h"}, "a", "b")
    c.put(0, member="b")
    for each in range(MAX_CLOSED + 20):
        c.put(each, member="a")
    assert len(c.put(1000, member="b").outputs) == MAX_CLOSED
    assert c.due == pytest.approx(1000.001), "at once"
    assert len(c.tick(1000).outputs) == 19


def test_panes_are_bounded_and_given_up_by_and_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer than on the platform: each update looks at all of them."""
    most, dropped = 400, 100
    monkeypatch.setattr(head, "MAX_PANES", most)
    monkeypatch.setattr(timed, "MAX_DROPPED", dropped)
    c = Composite({"type": "sliding", "size": "3h", "delay": "1h"})
    with pytest.raises(Ends, match=f"more than {most} panes"):
        for each in range(most + 1):
            c.put(each)
    assert len(c.told()["open"]) == 20
    kept = len(c.entries)
    for _ in range(100):
        before = len(c.entries)
        c.tick(20_000)
        assert before - len(c.entries) <= dropped
        if c.due is None:
            break
    assert (kept, len(c.entries)) == (most + 1, 1)


def test_a_window_of_too_many_timestamps_is_an_error_and_the_next_ones_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timed, "MAX_MERGED", 200)
    c = Composite({"type": "sliding", "size": "1200s"})
    kinds = [c.put(each).kind for each in range(300)]
    assert kinds.count("error") == 99
    assert windows(c.put(3000)) == []
    assert windows(c.put(3001)) == [(1801, 3001, 1)]


def test_many_members_are_kept_by_pages() -> None:
    names = [f"so/{number}" for number in range(100)]
    c = Composite({"type": "tumbling", "size": "10s"}, *names)
    for name in names:
        c.put(1, member=name)
    outputs = [windows(c.put(11, member=name)) for name in names]
    assert [len(each) for each in outputs] == [0] * 99 + [1]
    assert sum(count for each in outputs for *_, count in each) == 100


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
