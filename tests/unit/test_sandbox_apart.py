"""What ends processes only together is taken apart for seconds; no program is suspended for it."""

from __future__ import annotations

import pytest

from sandbox.host import apart as module
from sandbox.host.apart import FAILURES, MAX_REGIONS, SECONDS, WINDOW_SECONDS, Apart


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def an_apart() -> tuple[Apart, Clock]:
    clock = Clock()
    return Apart(clock), clock


def fail(apart: Apart, times: int = FAILURES, tenant: str = "a", region: str = "r") -> None:
    for _ in range(times):
        apart.failed(tenant, region)


def test_the_third_failure_takes_it_apart() -> None:
    """That region of that tenant, and for a second."""
    apart, clock = an_apart()
    fail(apart, FAILURES - 1)
    assert not apart.holds("a", "r")

    fail(apart, 1)

    assert apart.holds("a", "r")
    assert not apart.holds("a", "other")
    assert not apart.holds("b", "r")
    clock.now += SECONDS[0]
    assert not apart.holds("a", "r")


def test_each_failure_after_a_pause_makes_the_next_longer_up_to_the_longest() -> None:
    apart, clock = an_apart()
    fail(apart)
    for seconds in (*SECONDS[1:], SECONDS[-1]):
        while apart.holds("a", "r"):
            clock.now += 0.5
        fail(apart, 1)

        clock.now += seconds - 0.1
        assert apart.holds("a", "r")
        clock.now += 0.1
        assert not apart.holds("a", "r")


def test_what_grows_after_a_pause_is_trusted_again() -> None:
    apart, clock = an_apart()
    fail(apart)
    clock.now += SECONDS[0]

    apart.grew("a", "r")

    fail(apart, FAILURES - 1)
    assert not apart.holds("a", "r")


def test_what_grows_now_and_then_fails_all_the_same() -> None:
    """A chain that takes too long with every other update."""
    apart, _ = an_apart()
    for _ in range(FAILURES):
        apart.failed("a", "r")
        apart.grew("a", "other")
        if not apart.holds("a", "r"):
            apart.grew("a", "r")

    assert apart.holds("a", "r")


def test_a_culprit_explains_what_has_failed() -> None:
    """It is suspended; the others of its tenant go on together."""
    apart, _ = an_apart()
    fail(apart)

    apart.explained("a")

    assert not apart.holds("a", "r")


def test_failures_far_apart_do_not_add_up() -> None:
    apart, clock = an_apart()
    for _ in range(FAILURES + 1):
        fail(apart, 1)
        clock.now += WINDOW_SECONDS + 1

    assert not apart.holds("a", "r")


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By tenants, and by regions of each."""
    monkeypatch.setattr(module, "MAX_TENANTS", 2)
    apart, _ = an_apart()
    for number in range(MAX_REGIONS + 1):
        apart.failed("a", str(number))
    assert len(apart._tenants["a"]) == MAX_REGIONS

    for tenant in "bc":
        apart.failed(tenant, "r")
    assert set(apart._tenants) == {"b", "c"}
