"""How long a run may take in all."""

from __future__ import annotations

import pytest

from sandbox import TookTooLong
from sandbox.host.allowance import Allowance
from sandbox.host.worker_client import Budget


class Watch:
    """A clock that is told the time."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_exactly_the_allowance_is_not_too_long_and_a_moment_more_is() -> None:
    """Looked at between frames."""
    watch = Watch()
    allowance = Allowance(2.0, watch)
    watch.now += 2.0
    allowance.check()
    watch.now += 0.25

    with pytest.raises(TookTooLong) as caught:
        allowance.check()
    assert (caught.value.seconds, caught.value.within) == (2.25, 2.0)


@pytest.mark.parametrize(
    ("used", "granted"),
    [(0.0, 500), (1.5, 500), (1.75, 250), (1.9375, 100), (2.0, 100), (3.0, 100)],
)
def test_a_frame_is_granted_what_is_left_but_not_less_than_the_least(
    used: float, granted: int
) -> None:
    """So that the allowance is passed by one frame's least budget at most."""
    watch = Watch()
    allowance = Allowance(2.0, watch)
    watch.now += used

    assert allowance.granted(500, 100) == granted
    assert allowance.granted(50, 50) == 50


def test_what_was_prepared_has_gone_with_a_process() -> None:
    """Whoever hangs is not asked a hundred times for having had to begin anew each time."""
    allowance = Allowance(1.0, Watch())
    allowance.note_preparation()

    assert allowance.spent().prepared
    assert not allowance.spent(in_vain=True).prepared


def test_without_an_allowance_nothing_is_too_long() -> None:
    """The usual case of whoever asks for one program."""
    watch = Watch()
    allowance = Allowance(None, watch)
    watch.now += 10**9
    allowance.check()

    assert allowance.granted(500, 100) == 500


def test_what_was_used_cannot_be_changed() -> None:
    """An error's facts stay as they were found."""
    error = TookTooLong(1.5, 1.0)

    with pytest.raises(AttributeError):
        error.seconds = 0  # type: ignore[misc]
    assert str(error) == "1.50 s of at most 1.00 s"


@pytest.mark.parametrize(("seconds", "was_given"), [(0.09, False), (0.1, True), (0.12, True)])
def test_whoever_has_had_less_than_its_budget_of_the_processor_is_not_to_blame(
    seconds: float, was_given: bool
) -> None:
    """So a frame may take longer by the clock from the beginning: it is never alone."""
    budget = Budget(100, 100)
    assert budget.wall_milliseconds == 125
    assert budget.was_given(seconds) == was_given
    assert Budget(100, 100, 4).was_given(seconds) == was_given
