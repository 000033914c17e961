"""What is too old is removed when nothing else is to be done, and a little of it meanwhile."""

from __future__ import annotations

import time

import pytest
from engine_builders import evaluators
from memory import MemoryPlatform
from oracle import Object
from put_off_runs import append
from serial_order import define

from pipeline.changes.expiring import REST_SECONDS, SHARE, SLICE_SECONDS, Expiring
from pipeline.engine import Engine
from pipeline.sharing.shares import Shares
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.errors import Unavailable
from servioticy.ports.expiry import Expired


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Store:
    """Of each tenant so many pieces, each of which takes its time."""

    def __init__(self, clock: Clock, seconds: float = SLICE_SECONDS / 3.5, **pieces: int) -> None:
        self.clock, self.seconds = clock, seconds
        self.left = {int(name[1:]): count for name, count in pieces.items()}
        self.asked: list[tuple[int, int]] = []
        self.fails: Exception | None = None

    def forgetful(self, _partition: int, after: int, most: int) -> list[int]:
        return sorted(each for each in self.left if each > after)[:most]

    def expire(self, tenant: int, after: int, *_bounds: int) -> Expired:
        if self.fails is not None:
            raise self.fails
        self.asked.append((tenant, after))
        self.clock.now += self.seconds
        if self.left[tenant]:
            self.left[tenant] -= 1
            return Expired(after + 1, 3, 300)
        return Expired(None, 0, 0)


def expiring(store: Store, share: float = 1.0) -> Expiring:
    return Expiring(0, store, Shares(share, store.clock), (Unavailable,), store.clock)  # type: ignore[arg-type]


def test_tenants_take_turns() -> None:
    """One that has much to lose holds up no other: a piece of each."""
    store = Store(Clock(), t1=5, t2=1, t3=2)
    work = expiring(store)
    while not work.left():
        work.work(idle=True)

    tenants = [tenant for tenant, _ in store.asked]
    assert tenants[:8] == [1, 2, 3, 1, 2, 3, 1, 3]
    assert store.left == {1: 0, 2: 0, 3: 0}
    assert [after for tenant, after in store.asked if tenant == 1] == [*range(6)]


def test_a_slice_at_a_time_and_a_rest_after_the_round() -> None:
    clock = Clock()
    store = Store(clock, t1=10)
    work = expiring(store)
    rounds = 0
    while not work.left():
        before = clock.now
        work.work(idle=True)
        rounds += 1
        assert clock.now - before <= SLICE_SECONDS + store.seconds

    assert rounds > 2
    assert work.left() == pytest.approx(REST_SECONDS)
    asked = len(store.asked)
    work.work(idle=True)
    assert len(store.asked) == asked, "nobody is asked before the rest is over"
    clock.now += REST_SECONDS + 1
    work.work(idle=True)
    assert len(store.asked) == asked + 1


def test_while_updates_come_it_has_its_share() -> None:
    clock = Clock()
    began, store = clock.now, Store(clock, t1=200)
    work, spent = expiring(store), 0.0
    while store.left[1]:
        before = clock.now
        work.work(idle=False)
        spent += clock.now - before
        clock.now += 0.001  # a batch

    assert spent / (clock.now - began) == pytest.approx(SHARE, rel=0.1)


def test_whose_updates_they_are_pays_while_others_wait() -> None:
    clock = Clock()
    shares = Shares(0.5, clock)
    store = Store(clock, 1.0, t7=5)
    Expiring(0, store, shares, (), clock).work(idle=False)  # type: ignore[arg-type]

    assert shares.balance(7) < shares.balance(8)


def test_more_tenants_than_take_turns_at_once_have_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.changes.expiring.TENANTS", 2)
    store = Store(Clock(), t1=1, t2=1, t3=1, t4=1, t5=1)
    work = expiring(store)
    while not work.left():
        work.work(idle=True)

    assert set(store.left.values()) == {0}


def test_what_heals_by_waiting_is_told_and_done_again() -> None:
    store = Store(Clock(), t1=1)
    work = expiring(store)
    store.fails = Unavailable("Postgres is away")
    with pytest.raises(Unavailable):
        work.work(idle=True)
    store.fails = None
    work.work(idle=True)

    assert store.left == {1: 0}


def test_a_bug_in_it_stops_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    store = Store(Clock(), t1=1)
    work = expiring(store)
    store.fails = ValueError("a bug")
    work.work(idle=True)

    assert caplog.messages == ["expiry_failed"]
    assert work.left() == pytest.approx(REST_SECONDS)


@pytest.mark.parametrize("quiet", [True, False])
def test_a_task_removes_what_is_too_old(quiet: bool) -> None:
    """In its rest, or while there is always more to do; what is not acknowledged comes later."""
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("a"))
    assert tenant is not None
    for id_ in ("so", "other"):
        define(Object(id_, ("d0",), ()), {}, tenant, platform)
    platform.state.retention = 3600
    now = int(time.time())
    append(platform, [(("so", "d0"), now - 7200 + at, at) for at in range(20)])
    append(platform, [(("so", "d0"), now, 1)])
    clock = Clock()
    store = platform.partition_store(argument_names)
    engine = Engine(evaluators(), 10, 10**6, clock=clock)
    task = Task(0, store, lambda: platform.output(0), engine)
    log = platform.state.log[0]
    task.take([Row(at, value) for at, value in enumerate(log)])
    end = len(log)
    own = platform.state.streams["so", "d0"]
    for at in range(200):
        left = [timestamp for stream, timestamp in platform.state.updates if stream == own]
        if left == [now]:
            break
        clock.now += REST_SECONDS + 1
        if quiet:
            task.rest()
        append(platform, [(("other", "d0"), now + at, at)])
        task.take([Row(end, log[end])])
        end += 1

    assert left == [now]
