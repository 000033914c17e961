"""What is deleted is removed when nothing else is to be done, and a little of it meanwhile."""

from __future__ import annotations

from collections import Counter

import pytest
from engine_builders import evaluators
from memory import MemoryPlatform
from oracle import Object
from put_off_runs import append
from serial_order import define

from pipeline.changes.purging import SHARE, SLICE_SECONDS, Purging
from pipeline.engine import Engine
from pipeline.sharing.shares import Shares
from pipeline.state.partition import Partition
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.model import ServiceObjectKey
from servioticy.errors import Unavailable


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Store:
    """So many pieces of a tenant, each of which takes its time."""

    def __init__(self, clock: Clock, pieces: int, seconds: float = SLICE_SECONDS / 3.5) -> None:
        self.clock, self.left, self.seconds = clock, pieces, seconds

    def purge(self, _partition: int, _most: int, _most_bytes: int) -> int | None:
        self.clock.now += self.seconds
        self.left -= 1
        return 7 if self.left >= 0 else None


@pytest.fixture
def platform() -> MemoryPlatform:
    return MemoryPlatform()


@pytest.fixture
def partition(platform: MemoryPlatform) -> Partition:
    return Partition(0, platform.partition_store(argument_names), 10**6)


def purging(partition: Partition, store: object, clock: Clock, share: float = 1.0) -> Purging:
    partition.store = store  # type: ignore[assignment]
    return Purging(partition, Shares(share, clock), (Unavailable,), clock)


def test_one_slice_after_the_other_while_nothing_else_is_to_be_done(partition: Partition) -> None:
    clock = Clock()
    store = Store(clock, 9)
    work = purging(partition, store, clock)

    for left in (5, 1):
        work.work(idle=True)
        assert store.left == left
        assert partition.to_purge
    work.work(idle=True)

    assert not partition.to_purge
    work.work(idle=True)
    assert store.left == -1, "nobody is asked again"


def test_while_updates_come_it_has_its_share_and_ends(partition: Partition) -> None:
    clock = Clock()
    began = clock.now
    store = Store(clock, 100)
    work = purging(partition, store, clock)
    spent = 0.0
    while partition.to_purge:
        before = clock.now
        work.work(idle=False)
        assert clock.now - before <= SLICE_SECONDS + store.seconds
        spent += clock.now - before
        clock.now += 0.001  # a batch

    assert store.left == -1
    assert spent / (clock.now - began) == pytest.approx(SHARE, rel=0.1)


def test_the_tenant_who_deleted_pays_for_it_while_others_wait(partition: Partition) -> None:
    clock = Clock()
    shares = Shares(0.5, clock)
    partition.store = Store(clock, 100, 1.0)  # type: ignore[assignment]
    Purging(partition, shares, (), clock).work(idle=False)

    assert shares.balance(7) < shares.balance(8)


class Broken:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def purge(self, *_arguments: int) -> int | None:
        raise self.error


def test_a_bug_in_it_stops_nothing_else(
    partition: Partition, caplog: pytest.LogCaptureFixture
) -> None:
    work = purging(partition, Broken(ValueError("a bug")), Clock())
    work.work(idle=True)

    assert not partition.to_purge
    assert caplog.messages == ["purge_failed"]


def test_what_heals_by_waiting_is_told(partition: Partition) -> None:
    work = purging(partition, Broken(Unavailable("Postgres is away")), Clock())
    with pytest.raises(Unavailable):
        work.work(idle=True)
    assert partition.to_purge


class InPieces:
    """The twin, which removes one row at a time and counts."""

    def __init__(self, store) -> None:
        self._store, self.pieces = store, 0

    def __getattr__(self, name: str):
        return getattr(self._store, name)

    def purge(self, partition: int, _most: int, most_bytes: int) -> int | None:
        self.pieces += 1
        return self._store.purge(partition, 1, most_bytes)


@pytest.mark.parametrize("quiet", [True, False])
def test_a_task_removes_what_is_deleted(platform: MemoryPlatform, quiet: bool) -> None:
    """In its rest, which then is not long in coming; or while there is always more to do."""
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("a"))
    for id_ in ("so", "other"):
        define(Object(id_, ("d0",), ()), {}, tenant, platform)
    append(platform, [(("so", "d0"), at, at) for at in range(50)])
    platform.changes.delete(ServiceObjectKey(tenant, "so"), None, 0)
    store = InPieces(platform.partition_store(argument_names))
    task = Task(0, store, lambda: platform.output(0), Engine(evaluators(), 10, 10**6))
    log = platform.state.log[0]
    task.take([Row(at, value) for at, value in enumerate(log)])
    end = len(log)
    for at in range(100_000):
        if not platform.state.purge:
            break
        if quiet:
            assert task.patience == 0.0
            task.rest()
        else:
            append(platform, [(("other", "d0"), at, at)])
            task.take([Row(end, log[end])])
            end += 1

    names = Counter(row.stream_id for _partition, row in platform.state.updates.values())
    other = platform.state.streams["other", "d0"]
    assert set(names) == set() if quiet else set(names) <= {other}
    assert store.pieces >= 50
    task.rest()
    assert task.patience > 0.0
