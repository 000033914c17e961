"""What streams have used comes to their accounts, each bit once, and nobody waits for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.accounting.accounts import Accounts
from pipeline.accounting.metering import PART, SECONDS, Meter
from pipeline.growth import Verdict
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.accounts import Use

A = StreamRef("so", "a")
B = StreamRef("so", "x/y@z")


class Later(Executor):
    """Does what it is given when it is told to."""

    def __init__(self) -> None:
        self._left: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, act: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._left.append((future, partial(act, *arguments, **named)))
        return future

    def go_on(self) -> None:
        for future, act in self._left:
            future.set_result(act())
        self._left.clear()


class Ground:
    """A partition with two streams, its store, and a clock."""

    def __init__(self) -> None:
        self.objects = {"so": SimpleNamespace(tenant=7)}
        self.used: dict[str, float] = {}
        self.store = self
        self.accounts = Accounts()
        self.uses: list[list[Use]] = []
        self.answers = True
        self.fails = False
        self.now = 0.0
        self.paused = 0.0
        self.executor = Later()
        self.meter = Meter(lambda: self.used, lambda: self.now, self.executor, self.pause)

    def known(self, service_object: str) -> Any:
        return self.objects.get(service_object)

    def account(self, uses: list[Use]) -> None:
        if self.fails:
            raise ValueError("a bug")
        if not self.answers:
            raise Unavailable("away")
        self.now += 0.25
        self.uses.append(uses)

    def pause(self, seconds: float) -> None:
        self.paused += seconds

    def counts(self, count: int = 1) -> None:
        """So many streams have an update each."""
        refs = [StreamRef("so", f"s{n:06}") for n in range(count)]
        rows = [(KnownStream(ref, 7, 1, 1, None), 1, b"1", 0, 0, ()) for ref in refs]
        self.accounts.note(rows, [])

    def begin(self) -> None:
        self.meter.charge(self)  # type: ignore[arg-type]

    def settle(self) -> list[Use]:
        """What is settled now."""
        self.uses.clear()
        self.begin()
        self.executor.go_on()
        settled = [each for some in self.uses for each in some]
        assert all(each.tenant == 7 for each in settled)
        return settled

    def settled(self) -> list[int]:
        """The updates of each account that is settled now."""
        return [each.updates for each in self.settle()]

    def charged(self) -> list[tuple[StreamRef, int]]:
        """What is charged now: (stream, microseconds)."""
        return [(each.stream, each.microseconds) for each in self.settle() if each.microseconds]


@pytest.fixture
def ground() -> Ground:
    return Ground()


def test_only_what_is_new_is_charged(ground: Ground) -> None:
    ground.used = {"so/a@1": 0.5, "so/x/y@z@3": 0.25}
    assert ground.charged() == [(A, 500_000), (B, 250_000)]
    assert ground.charged() == []
    ground.used["so/a@1"] = 0.75
    assert ground.charged() == [(A, 250_000)]


def test_versions_of_a_stream_are_one_account(ground: Ground) -> None:
    ground.used = {"so/a@1": 0.5, "so/a@2": 0.25}
    assert ground.charged() == [(A, 750_000)]


def test_what_the_sandbox_forgot_counts_from_zero(ground: Ground) -> None:
    ground.used = {"so/a@1": 0.5}
    ground.charged()
    ground.used = {"so/a@1": 0.125}
    assert ground.charged() == [(A, 125_000)]


def test_nothing_is_lost_while_the_store_is_away(ground: Ground) -> None:
    ground.used = {"so/a@1": 0.5}
    ground.counts()
    ground.answers = False
    assert ground.settle() == []
    ground.answers = True
    ground.used = {"so/a@1": 0.75}
    ground.counts()
    settled = {each.stream: each for each in ground.settle()}

    assert settled[A].microseconds == 750_000
    assert settled[StreamRef("so", "s000000")].updates == 2
    assert ground.settle() == []


def test_what_nobody_knows_here_is_left_to_who_does(ground: Ground) -> None:
    """One meter serves all partitions of a worker."""
    ground.used = {"so/a@1": 0.5}
    ground.objects.clear()
    assert ground.settle() == []
    ground.objects["so"] = SimpleNamespace(tenant=7)
    assert ground.charged() == [(A, 500_000)]


def test_what_has_gone_since_it_computed_is_charged(ground: Ground) -> None:
    """Else whoever deletes a Service Object soon enough computes for nothing."""
    ground.used = {"so/a@1": 0.5}
    stream = KnownStream(A, 7, 1, 1, None)
    ground.accounts.note([], [Verdict(stream, "filtered", stream, 1)])
    ground.objects.clear()

    assert ground.settle() == [Use(7, A, 7, computations={"filtered": 1}, microseconds=500_000)]
    assert ground.settle() == []


def test_processor_time_is_split_as_who_woke_the_code(ground: Ground) -> None:
    """By computations whose code ran; what comes to the meter after them is split as they were."""
    own, theirs = (KnownStream(A, tenant, 1, 1, None) for tenant in (7, 8))
    ended = [("emitted", own, 1), ("timeout", theirs, 2), ("stale", theirs, 9)]
    ground.used = {"so/a@1": 0.3, "so/x/y@z@3": 0.1}
    ground.accounts.note([], [Verdict(own, kind, by, 1, times=n) for kind, by, n in ended])
    first = {(each.stream, each.provider): each.microseconds for each in ground.settle()}
    ground.used = {"so/a@1": 0.6}
    second = {(each.stream, each.provider): each.microseconds for each in ground.settle()}
    ground.used = {"so/a@1": 0.9}
    ground.accounts.note([], [Verdict(own, "emitted", own, 1)])
    third = {(each.stream, each.provider): each.microseconds for each in ground.settle()}

    assert first == {(A, 7): 100_000, (A, 8): 200_000, (B, 7): 100_000}
    assert second == {(A, 7): 100_000, (A, 8): 200_000}
    assert third == {(A, 7): 300_000}


def test_it_is_due_now_and_then(ground: Ground) -> None:
    assert not ground.meter.due
    ground.now = SECONDS
    assert ground.meter.due
    ground.settle()
    assert not ground.meter.due


def test_what_is_under_way_is_not_begun_again(ground: Ground) -> None:
    """What is counted meanwhile comes with the next."""
    ground.used = {"so/a@1": 0.5}
    ground.begin()
    ground.counts()
    ground.begin()
    ground.executor.go_on()
    assert ground.uses == [[Use(7, A, 7, microseconds=500_000)]]

    assert ground.settled() == [1]


def test_many_go_in_parts_with_pauses_as_long_as_each_took(ground: Ground) -> None:
    """What has used nothing is no part of them."""
    ground.used = {f"so/s{n:06}@1": 0.5 for n in range(PART + 1)}
    ground.used |= {f"so/idle{n}@1": 0.0 for n in range(PART)}
    ground.counts(2 * PART + 1)

    settled = ground.settle()
    assert [each.updates for each in settled] == [1] * (2 * PART + 1)
    assert sum(each.microseconds > 0 for each in settled) == PART + 1
    assert [len(each) for each in ground.uses] == [PART, PART, 1]
    assert ground.paused == 2 * 0.25


def test_a_part_that_is_stored_is_not_stored_again(ground: Ground) -> None:
    ground.counts(PART + 1)
    stored: list[list[Use]] = []

    def account(uses: list[Use]) -> None:
        if stored:
            raise Unavailable("away")
        stored.append(uses)

    ground.account = account  # type: ignore[method-assign]
    ground.settle()
    del ground.account
    assert len(stored[0]) == PART

    assert ground.settled() == [1]


def test_a_bug_in_the_accounts_stops_no_update_and_loses_only_what_was_counted(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    ground.counts()
    ground.fails = True
    assert ground.settled() == []
    ground.fails = False
    ground.counts()

    assert ground.settled() == [1]
    assert [(each.message, bool(each.exc_info)) for each in caplog.records] == [
        ("accounts_lost", True)
    ]


def test_a_bug_in_what_scripts_have_used_loses_no_accounts(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    ground.used = {"so/a@1": "much"}  # type: ignore[dict-item]
    ground.counts()

    assert ground.settled() == [1]
    assert [each.message for each in caplog.records] == ["accounts_lost"]


def test_what_a_partition_had_counted_when_it_was_begun_anew_is_settled(ground: Ground) -> None:
    ground.counts()
    ground.meter.keep(ground.accounts)
    ground.counts(2)

    assert sorted(ground.settled()) == [1, 2]
    assert ground.settled() == []
