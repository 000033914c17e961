"""The states of an actuation: which follows from which, and from what a device says."""

from __future__ import annotations

import pytest

from servioticy.domain.actuations import (
    DEFAULT_TIMEOUT,
    ENDED,
    MAX_TIMEOUT,
    State,
    before,
    before_others,
    said,
    seen,
    timeout_of,
)


def test_no_state_leads_back() -> None:
    """Each state is reached only from those that stand before it."""
    order = [State.QUEUED, State.SENT, State.DELIVERED, State.DONE]
    for place, state in enumerate(order[1:], 1):
        assert before(state) == [each.value for each in order[:place]]
    assert before(State.FAILED) == before(State.DONE)


def test_what_others_say_does_not_mean_that_the_device_has_it() -> None:
    """Of one that it has they may say how it ended."""
    assert before_others(State.DELIVERED) == []
    for state in (State.DONE, State.FAILED):
        assert before_others(state) == ["delivered"]


@pytest.mark.parametrize("state", [State.QUEUED, State.SENT, State.DELIVERED])
def test_what_is_not_ended_expires(state: State) -> None:
    assert seen(state, expires_ms=10, now_ms=9) is state
    assert seen(state, expires_ms=10, now_ms=10) is State.EXPIRED


@pytest.mark.parametrize("state", ENDED)
def test_what_has_ended_stays(state: State) -> None:
    assert seen(state, expires_ms=10, now_ms=11) is state


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("Received on the device", State.DELIVERED),
        ("delivered", State.DELIVERED),
        ("done", State.DONE),
        ("Done: 3 s", State.DONE),
        (" FAILED : no power", State.FAILED),
        ("failed to fail", State.DELIVERED),
        ("expired", State.DELIVERED),
    ],
)
def test_a_device_says_what_it_has_done(status: str, state: State) -> None:
    """Whatever the original's devices say, they have got it."""
    assert said(status) is state


@pytest.mark.parametrize("wrong", [None, 0, -1, 1.5, True, "60", MAX_TIMEOUT + 1, 10**30])
def test_a_stored_timeout_that_is_none_is_the_usual_one(wrong: object) -> None:
    assert timeout_of({"timeout": wrong}) == DEFAULT_TIMEOUT
    assert timeout_of({"timeout": MAX_TIMEOUT}) == MAX_TIMEOUT
