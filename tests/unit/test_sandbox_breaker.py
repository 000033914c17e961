"""When a program stops being run, and when it is tried again."""

from __future__ import annotations

import pytest

from sandbox.host.breaker import KILLS, SUSPENSIONS, TENANT_KILLS, WINDOW_SECONDS, Breaker
from sandbox.suspension import reading

NOW = 1_500_000_000.0


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def a_breaker() -> tuple[Breaker, Clock]:
    clock = Clock()
    return Breaker(clock, lambda: NOW), clock


def kill(breaker: Breaker, times: int, program: str = "p", tenant: str = "a") -> None:
    for _ in range(times):
        breaker.killed(tenant, program, "timeout")


def test_the_third_kill_suspends() -> None:
    """The program alone, not its tenant's others."""
    breaker, _ = a_breaker()
    kill(breaker, 2)
    assert breaker.suspension("p") is None

    kill(breaker, 1)

    found = breaker.suspension("p")
    assert found
    assert (found.tenant, found.kind, found.kills, found.seconds) == ("a", "timeout", 3, 60.0)
    assert breaker.suspension("q") is None


def test_kills_far_apart_do_not_add_up() -> None:
    """A rare accident is not a habit."""
    breaker, clock = a_breaker()
    for _ in range(5):
        kill(breaker, 1)
        clock.now += WINDOW_SECONDS / 2 + 1

    assert breaker.suspension("p") is None
    assert breaker.all() == {}


def test_half_open_it_is_tried_and_suspended_for_longer() -> None:
    """Each failure in a row costs more, up to the longest."""
    breaker, clock = a_breaker()
    kill(breaker, 3)
    for seconds in (*SUSPENSIONS[1:], SUSPENSIONS[-1]):
        found = breaker.suspension("p")
        assert found
        clock.now += found.seconds
        assert breaker.suspension("p") is None
        assert breaker.all()["p"].seconds == 0
        kill(breaker, 1)
        again = breaker.suspension("p")
        assert again
        assert again.seconds == seconds


def test_half_open_a_success_forgives() -> None:
    """Everything: the next suspension is a first one."""
    breaker, clock = a_breaker()
    kill(breaker, 3)
    clock.now += SUSPENSIONS[0]

    breaker.survived(["p"])

    assert breaker.all() == {}
    kill(breaker, 2)
    assert breaker.suspension("p") is None


def test_a_success_while_closed_forgives_nothing() -> None:
    """A program that hangs on every tenth update is still a burden."""
    breaker, _ = a_breaker()
    kill(breaker, 2)
    breaker.survived(["p"])
    kill(breaker, 1)

    assert breaker.suspension("p")


def test_a_tenant_of_many_bad_programs_has_less_patience() -> None:
    """A hundred programs would otherwise cost three hundred processes."""
    breaker, _ = a_breaker()
    for number in range(TENANT_KILLS):
        kill(breaker, 1, f"p{number}")
    assert breaker.all() == {}

    kill(breaker, 1, "next")
    kill(breaker, 1, "other", tenant="b")

    assert set(breaker.all()) == {"next"}


def test_programs_of_such_a_tenant_that_have_worked_keep_their_patience() -> None:
    """They have ended none before: what others of the tenant do is not their doing."""
    breaker, _ = a_breaker()
    breaker.survived(["good"])
    kill(breaker, TENANT_KILLS + 1)

    kill(breaker, KILLS - 1, "good")
    assert breaker.suspension("good") is None

    kill(breaker, 1, "good")
    assert breaker.suspension("good")


def test_no_program_waits_for_what_others_have_done() -> None:
    """However many of a tenant's have ended processes: one that has not is run."""
    breaker, _ = a_breaker()
    for number in range(10 * TENANT_KILLS):
        kill(breaker, KILLS, f"p{number}")

    assert breaker.suspension("new") is None


def test_who_is_suspended_is_told_why_and_until_when() -> None:
    """And what is told can be read again."""
    breaker, _ = a_breaker()
    kill(breaker, KILLS, "so/out@1")

    found = breaker.suspension("so/out@1")

    assert found
    assert found.text == (
        "until 2017-07-14T02:41:00Z: so/out@1 has ended 3 processes, the last one by timeout"
    )
    read = reading(f"longer than 0.1 s; suspended {found.text}")
    assert read
    assert (read.until.timestamp(), read.program) == (NOW + 60, "so/out@1")
    assert read.why == "its code has ended 3 processes, the last one by timeout"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "for 60 s, after 3 x timeout",
        "until 2017-99-99T99:99:99Z: so/out@1 has ended 3 processes, the last one by timeout",
        "until then: so/out@1 has ended 3 processes",
    ],
)
def test_what_says_something_else_is_no_suspension(text: str) -> None:
    """Verdicts of an earlier version, for one."""
    assert reading(text) is None
