"""When a program stops being run, and when it is tried again."""

from __future__ import annotations

from sandbox.host.breaker import SUSPENSIONS, TENANT_KILLS, WINDOW_SECONDS, Breaker


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def a_breaker() -> tuple[Breaker, Clock]:
    clock = Clock()
    return Breaker(clock), clock


def kill(breaker: Breaker, times: int, program: str = "p", tenant: str = "a") -> None:
    for _ in range(times):
        breaker.killed(tenant, program, "timeout")


def test_the_third_kill_suspends() -> None:
    """The program alone, not its tenant's others."""
    breaker, _ = a_breaker()
    kill(breaker, 2)
    assert breaker.suspension("a", "p") is None

    kill(breaker, 1)

    found = breaker.suspension("a", "p")
    assert found
    assert (found.tenant, found.kind, found.kills, found.seconds) == ("a", "timeout", 3, 60.0)
    assert breaker.suspension("a", "q") is None


def test_kills_far_apart_do_not_add_up() -> None:
    """A rare accident is not a habit."""
    breaker, clock = a_breaker()
    for _ in range(5):
        kill(breaker, 1)
        clock.now += WINDOW_SECONDS / 2 + 1

    assert breaker.suspension("a", "p") is None
    assert breaker.all() == {}


def test_half_open_it_is_tried_and_suspended_for_longer() -> None:
    """Each failure in a row costs more, up to the longest."""
    breaker, clock = a_breaker()
    kill(breaker, 3)
    for seconds in (*SUSPENSIONS[1:], SUSPENSIONS[-1]):
        found = breaker.suspension("a", "p")
        assert found
        clock.now += found.seconds
        assert breaker.suspension("a", "p") is None
        assert breaker.all()["p"].seconds == 0
        kill(breaker, 1)
        again = breaker.suspension("a", "p")
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
    assert breaker.suspension("a", "p") is None


def test_a_success_while_closed_forgives_nothing() -> None:
    """A program that hangs on every tenth update is still a burden."""
    breaker, _ = a_breaker()
    kill(breaker, 2)
    breaker.survived(["p"])
    kill(breaker, 1)

    assert breaker.suspension("a", "p")


def test_a_tenant_of_many_bad_programs_has_less_patience() -> None:
    """A hundred programs would otherwise cost three hundred processes."""
    breaker, _ = a_breaker()
    for number in range(TENANT_KILLS):
        kill(breaker, 1, f"p{number}")
    assert breaker.all() == {}

    kill(breaker, 1, "next")
    kill(breaker, 1, "other", tenant="b")

    assert set(breaker.all()) == {"next"}


def test_new_programs_of_such_a_tenant_wait() -> None:
    """Each would have its own first process to end; those that have worked, work on."""
    breaker, clock = a_breaker()
    breaker.survived(["good"])
    kill(breaker, TENANT_KILLS)
    assert breaker.suspension("a", "new") is None

    kill(breaker, 1)

    waiting = breaker.suspension("a", "new")
    assert waiting is not None
    assert waiting.kills == TENANT_KILLS + 1
    assert breaker.suspension("a", "good") is None
    assert breaker.suspension("b", "new") is None
    clock.now += waiting.seconds
    assert breaker.suspension("a", "new") is None
