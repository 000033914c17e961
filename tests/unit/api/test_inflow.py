"""A tenant's updates are bounded in bytes a second, and nobody else's with them."""

from __future__ import annotations

import pytest

from api.backlog import SECONDS, Backlog
from api.inflow import BURST_SECONDS, MAX_KNOWN, Inflow
from servioticy.ports.addresses import Address


class Clock:
    now = 10.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_comes_at_once_and_one_byte_more_does_not() -> None:
    inflow = Inflow(100, Clock())

    assert inflow.take(1, int(100 * BURST_SECONDS))
    assert not inflow.take(1, 1)
    assert inflow.take(2, 1)


def test_what_is_refused_is_not_counted() -> None:
    clock = Clock()
    inflow = Inflow(100, clock)
    inflow.take(1, int(100 * BURST_SECONDS))
    for _ in range(5):
        inflow.take(1, 60)
    clock.now += 0.61

    assert inflow.take(1, 60)


def test_an_update_larger_than_the_bucket_comes_when_it_is_full() -> None:
    clock = Clock()
    inflow = Inflow(1, clock)

    assert inflow.take(1, 1000)
    clock.now += 999
    assert not inflow.take(1, 1000)
    clock.now += 1
    assert inflow.take(1, 1000)


def test_buckets_are_bounded() -> None:
    inflow = Inflow(100, Clock())
    for tenant in range(MAX_KNOWN + 1):
        inflow.take(tenant, int(100 * BURST_SECONDS))

    assert inflow.take(0, 1)
    assert not inflow.take(MAX_KNOWN, 1)


@pytest.mark.parametrize("waiting", [2, 3])
def test_updates_are_refused_where_too_many_wait(waiting: int) -> None:
    """Of the tenant's own, in that partition; asked at most once a second."""

    class History:
        asked = 0

        def backlog(self, partition: int, tenant: int, most: int) -> int:
            self.asked += 1
            return min(most, waiting if (partition, tenant) == (1, 7) else 0)

    history, clock = History(), Clock()
    backlog = Backlog(history, 3, clock)  # type: ignore[arg-type]
    address = Address(7, "so", 7, False, 1, 1, 5)

    assert backlog.is_full(address) == (waiting == 3)
    assert backlog.is_full(address) == (waiting == 3)
    assert not backlog.is_full(address._replace(owner=8))
    assert history.asked == 2
    clock.now += SECONDS + 0.1
    backlog.is_full(address)
    assert history.asked == 3
