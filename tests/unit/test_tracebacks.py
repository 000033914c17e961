"""A mistake that is made to happen again and again is told with its traceback once a minute."""

from __future__ import annotations

import pytest

from servioticy.errors import Unavailable
from servioticy.tracebacks import MAX_ERROR, MAX_KINDS, MAX_TRACEBACK, SECONDS, Tracebacks


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def caught(error: Exception) -> Exception:
    try:
        raise error
    except Exception as found:
        return found


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tracebacks(clock: Clock) -> Tracebacks:
    return Tracebacks(clock)


def test_the_first_of_a_kind_has_its_traceback_and_those_like_it_are_a_line(
    tracebacks: Tracebacks, clock: Clock
) -> None:
    told = [tracebacks.facts("failed", caught(ValueError(f"text {n}"))) for n in range(1_000)]

    assert ["traceback" in each for each in told] == [True] + [False] * 999
    assert told[999]["error"] == "ValueError: text 999"
    assert told[999]["place"].startswith("tests/unit/test_tracebacks.py:")
    clock.now += SECONDS
    assert "traceback" in tracebacks.facts("failed", caught(ValueError("again")))


def test_another_event_or_another_error_is_another_kind(tracebacks: Tracebacks) -> None:
    tracebacks.facts("failed", caught(ValueError()))

    assert "traceback" in tracebacks.facts("lane_failed", caught(ValueError()))
    assert "traceback" in tracebacks.facts("failed", caught(KeyError()))


@pytest.mark.parametrize(
    "error", [Unavailable("Postgres is away"), ConnectionResetError(), TimeoutError(), EOFError()]
)
def test_what_is_expected_has_none(error: Exception, tracebacks: Tracebacks) -> None:
    assert tracebacks.facts("failed", caught(error)).keys() == {"error", "place"}


def test_an_error_is_short_whatever_it_quotes(tracebacks: Tracebacks) -> None:
    told = tracebacks.facts("failed", caught(ValueError("\ud800" * 1_000_000)))

    assert len(told["error"]) <= MAX_ERROR
    assert len(told["traceback"]) <= MAX_TRACEBACK


def test_kinds_are_forgotten(tracebacks: Tracebacks) -> None:
    for number in range(10 * MAX_KINDS):
        tracebacks.facts(f"event {number}", ValueError())

    assert len(tracebacks._told) == MAX_KINDS


def test_an_error_that_was_never_raised_has_no_place(tracebacks: Tracebacks) -> None:
    assert tracebacks.facts("failed", ValueError("x"))["place"] == ""
