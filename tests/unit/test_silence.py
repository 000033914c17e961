"""The operator of silence, one computation after the other."""

from __future__ import annotations

import json

import pytest
from windowed_composite import BASE, Composite, Watch

from servioticy.domain.evaluators.operators import Answer
from servioticy.domain.evaluators.silence import HEAD, MAX_NAMED, MAX_TOLD


def told_of(answer: Answer) -> list[tuple[int, str, bool, int]]:
    """When, of which stream, whether it is silent, and how many are."""
    found = []
    for output in answer.outputs:
        (each,) = [w for w in json.loads(output.document)["windows"] if w is not None]
        found.append((output.timestamp - BASE, each["stream"], each["silent"], each["count"]))
    return found


def test_it_is_told_once_and_so_is_its_end() -> None:
    c = Watch(10, "a", "b", "never")
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
    assert c.told() == {"silent": 1, "streams": ["a"]}


def test_many_fall_silent_at_once() -> None:
    names = [f"so/{number}" for number in range(MAX_TOLD + 30)]
    c = Watch(10, *names)
    for name in names:
        c.put(0, member=name)
    first = told_of(c.tick(10))
    assert c.due == pytest.approx(10.001), "at once"
    second = told_of(c.tick(10.001))
    assert [len(first), len(second)] == [MAX_TOLD, 30]
    assert [at for at, *_ in first + second] == list(range(10, 140)), "each later than the last"
    assert c.due is None
    assert c.told() == {"silent": MAX_TOLD + 30, "streams": names[:MAX_NAMED]}


def test_timestamps_that_count_something_else_do_not_matter() -> None:
    c = Watch(10, "a")
    c.put(7 - BASE, at=0)
    (output,) = c.tick(10).outputs
    assert output.timestamp == 8, "one later: what is told is in the order of its timestamps"
    assert told_of(c.put(9 - BASE, at=12)) == [(9 - BASE, "a", False, 0)]


def test_another_time_holds_from_the_next_update_on_and_nobody_is_counted_twice() -> None:
    c = Watch(60, "a", "b")
    c.put(0, member="a")
    c.put(1, member="b")
    assert told_of(c.tick(60)) == [(60, "a", True, 1)]
    c.after(10)
    assert told_of(c.put(61, member="a")) == [(61, "a", False, 1), (62, "b", True, 1)]
    assert told_of(c.tick(71)) == [(71, "a", True, 2)]


def test_what_a_version_with_windows_has_set_goes() -> None:
    windowed = Composite({"type": "tumbling", "size": "10s"}, "a")
    windowed.put(1)
    c = Watch(10, "a")
    c.entries.update(windowed.entries)
    answer = c.tick(70, windowed.head)
    assert not answer.outputs
    assert windowed.head not in c.entries

    c.put(1)
    windowed.entries.update(c.entries)
    assert not windowed.tick(70, HEAD).outputs
    assert HEAD not in windowed.entries
