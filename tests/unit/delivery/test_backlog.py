"""What is kept for those who do not read is bounded, and those who hold most pay for it."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from delivery.backlog import Backlog


@dataclass(eq=False)
class Holder:
    tenant: int
    kept: int = 0
    dropped: bool = False
    checked_at: float | None = None

    def kept_bytes(self) -> int:
        return self.kept

    def drop(self) -> None:
        self.kept, self.dropped = 0, True

    def check_progress(self, now: float) -> None:
        self.checked_at = now


def test_nobody_is_dropped_at_the_limit_the_largest_is_beyond() -> None:
    backlog = Backlog(100)
    small, large = Holder(1, 40), Holder(2, 60)
    backlog.update(small)
    backlog.update(large)
    assert not large.dropped

    small.kept += 1
    backlog.update(small)

    assert (small.dropped, large.dropped) == (False, True)
    assert backlog.total == 41


def test_a_tenant_with_many_small_ones_has_more_than_one_with_a_large_one() -> None:
    """Shares are a tenant's, however many sockets it spreads them over."""
    backlog = Backlog(100)
    honest = Holder(1, 30)
    flood = [Holder(2, 2) for _ in range(40)]
    for each in (honest, *flood):
        backlog.update(each)

    assert not honest.dropped
    assert sum(each.dropped for each in flood) > 0


def test_who_has_read_meanwhile_does_not_pay() -> None:
    backlog = Backlog(100)
    read, unread, late = Holder(1, 90), Holder(2, 10), Holder(3, 5)
    backlog.update(read)
    backlog.update(unread)
    read.kept = 0
    backlog.update(late)

    assert not any(each.dropped for each in (read, unread, late))
    assert backlog.total == 15


def test_all_for_whom_something_is_kept_are_checked_and_counted() -> None:
    backlog = Backlog(100)
    one, gone = Holder(1, 90), Holder(2, 5)
    backlog.update(one)
    backlog.update(gone)
    backlog.remove(gone)
    one.kept = 3
    backlog.check_progress(12.5)

    assert (one.checked_at, gone.checked_at) == (12.5, None)
    assert backlog.total == 3


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60)), max_size=60))
def test_the_total_is_that_of_all_and_within_the_limit(changes: list[tuple[int, int]]) -> None:
    backlog = Backlog(100)
    holders = [Holder(each % 3) for each in range(10)]
    for number, kept in changes:
        holders[number].kept = kept
        backlog.update(holders[number])

        assert backlog.total == sum(each.kept for each in holders) <= 100
