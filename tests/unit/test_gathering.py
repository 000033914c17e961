"""How long a worker waits for more: never for one that is alone, and never long."""

from __future__ import annotations

import pytest

from servioticy.gathering import LONGEST_SECONDS, Gathering


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def waited(clock: Clock, number: int, took: float, pause: float) -> float:
    """Seconds for which more is waited for, when the first comes a pause after such a batch."""
    gathering = Gathering(clock)
    gathering.takes(number)
    clock.now += took
    gathering.ends()
    gathering.asks()
    clock.now += pause
    return gathering.until() - clock.now


@pytest.mark.parametrize(
    ("number", "took", "pause", "expected"),
    [
        (8, 0.004, 0.0, 0.002),
        (8, 0.004, 0.0005, 0.0015),  # it began to wait when it asked
        (8, 0.004, 0.002, 0.0),  # nothing came for as long: nothing is gained
        (1, 0.004, 0.0, 0.0),
        (8, 3.0, 0.0, LONGEST_SECONDS),
    ],
)
def test_who_took_several_waits_half_as_long_as_that_took(
    clock: Clock, number: int, took: float, pause: float, expected: float
) -> None:
    assert waited(clock, number, took, pause) == pytest.approx(expected)


def test_the_first_batch_waits_for_nothing(clock: Clock) -> None:
    gathering = Gathering(clock)
    gathering.ends()
    gathering.asks()

    assert gathering.until() == clock.now
