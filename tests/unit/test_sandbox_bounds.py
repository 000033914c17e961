"""What the pool keeps about tenants, and that there is an end of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sandbox import ChannelCode, Fault, Program
from sandbox.host import approval, breaker, usage
from sandbox.host.approval import Approval
from sandbox.host.breaker import Breaker
from sandbox.host.usage import Usage
from sandbox.host.worker_client import Failure


def a_program(name: str) -> Program:
    return Program(name, "expression", (), (ChannelCode("t", "1", "number"),))


def test_usage_forgets_tenants(monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform may see any number of them."""
    monkeypatch.setattr(usage, "MAX_TENANTS", 2)
    counted = Usage()
    for tenant in ("a", "b", "a", "c"):
        counted.charge(tenant, 1.0)

    assert dict(counted.tenants) == {"a": 2.0, "c": 1.0}


def test_the_breaker_forgets_tenants(monkeypatch: pytest.MonkeyPatch) -> None:
    """By number, and those that have been quiet for the whole window."""
    monkeypatch.setattr(breaker, "MAX_TENANTS", 2)
    now = 0.0
    fuse = Breaker(lambda: now)
    for tenant in ("a", "b", "a", "c"):
        fuse.killed(tenant, tenant + "'s", "timeout")
    assert set(fuse._tenants) == {"a", "c"}

    now = breaker.WINDOW_SECONDS
    assert list(fuse._tenants) == []


def test_kills_are_counted_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than enough to suspend."""
    monkeypatch.setattr(breaker, "MAX_KILLS", 5)
    fuse = Breaker(lambda: 0.0)
    for _ in range(6):
        fuse.killed("tenant", "program", "timeout")

    found = fuse.suspension("tenant", "program")
    assert found
    assert found.kills == 5


class Checker(Approval):
    """Answers without a process, and counts."""

    def __init__(self, answer: Any, clock: Any = None) -> None:
        zygote: Any = None
        super().__init__(zygote, 60, clock or (lambda: 0.0))
        self.answer = answer
        self.asked = 0

    def ask(self, texts: Sequence[bytes], allowance: Any) -> Any:
        self.asked += 1
        return self.answer or [[] for _ in texts]


def test_approval_forgets_the_longest_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """And asks again."""
    monkeypatch.setattr(approval, "MAX_REMEMBERED", 2)
    checker = Checker(None)
    for name in ("a", "b"):
        checker.learn([a_program(name)])
    checker.fault(a_program("a"))
    checker.learn([a_program("c")])

    assert set(checker._known) == {"a", "c"}


def test_what_cannot_be_checked_is_not_asked_at_every_update() -> None:
    """Each time would cost the partition the whole wait; after a minute it is tried again."""
    now = 0.0
    checker = Checker(Failure("timeout", ""), lambda: now)
    for _ in range(3):
        checker.learn([a_program("a")])
    assert checker.asked == 3  # in company, alone, and once more
    assert checker.fault(a_program("a")) == Fault("policy", "the program cannot be checked now")

    now = approval.RETRY_SECONDS
    checker.learn([a_program("a")])

    assert checker.asked == 6


def test_what_was_starved_is_asked_again() -> None:
    """It is the machine that had no time."""
    checker = Checker(Failure("timeout", "", starved=True))
    checker.learn([a_program("a")])
    checker.answer = None
    checker.learn([a_program("a")])

    assert checker.fault(a_program("a")) is None
