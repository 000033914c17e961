"""A stranger's nonsense, as fast as it comes: ten lines a second, and how many there were more."""

from __future__ import annotations

import json
import logging
import sys

from servioticy.logs import MAX_LINE, JsonLines
from servioticy.often import MAX_KINDS, MOST, NotTooOften


class Told:
    def __init__(self) -> None:
        self.now = 0.0
        self.late: list[logging.LogRecord] = []
        self.often = NotTooOften(self.late.append, lambda: self.now)

    def say(self, event: str, times: int = 1, name: str = "delivery") -> int:
        """How many of so many records are told."""
        record = logging.LogRecord(name, logging.WARNING, "", 0, event, (), None)
        return sum(self.often.filter(record) for _ in range(times))

    @property
    def suppressed(self) -> list[tuple[str, int]]:
        return [(each.msg, vars(each)["suppressed"]) for each in self.late]


def test_ten_of_a_kind_are_told_and_the_others_counted() -> None:
    told = Told()

    assert told.say("bad_frame", 10_000) == MOST
    assert told.say("other", 3) == 3
    assert told.say("bad_frame", 5, name="api") == 5
    told.now = 1.1
    assert told.say("bad_frame") == 1
    assert told.suppressed == [("bad_frame", 10_000 - MOST)]


def test_what_was_counted_is_told_though_nothing_more_comes() -> None:
    told = Told()
    told.say("bad_frame", 100)
    told.often.tick()
    assert told.suppressed == []

    told.now = 1.1
    told.often.tick()
    told.often.flush()

    assert told.suppressed == [("bad_frame", 90)]


def test_kinds_that_a_stranger_makes_up_are_one() -> None:
    told = Told()

    assert sum(told.say(f"kind {number}") for number in range(100_000)) == MAX_KINDS + MOST


def test_a_line_is_short_whatever_it_tells() -> None:
    """Texts, keys, what is not text, and a traceback that quotes all of it."""
    try:
        raise ValueError("x" * 1_000_000)
    except ValueError:
        error = sys.exc_info()
    record = logging.LogRecord("api", logging.ERROR, "", 0, "e" * 100_000, (), error)
    vars(record).update(a="\ud800" * 50_000, b=["y" * 90_000], c={"z" * 90_000: 1}, d=10**400)

    line = JsonLines().format(record)

    assert len(line.encode()) <= 2 * MAX_LINE
    assert json.loads(line)["traceback"].startswith("Traceback")
