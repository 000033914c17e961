"""What is kept for those who do not read is bounded, and the heaviest pay for it."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from delivery.backlog import Backlog


@dataclass(eq=False)
class Watcher:
    tenant: int
    kept: int = 0
    gave_up: bool = False
    looked_at: float | None = None

    def weight(self) -> int:
        return self.kept

    def give_up(self) -> None:
        self.kept, self.gave_up = 0, True

    def look_after(self, now: float) -> None:
        self.looked_at = now


def test_nobody_gives_up_at_the_limit_the_heaviest_does_beyond() -> None:
    backlog = Backlog(100)
    light, heavy = Watcher(1, 40), Watcher(2, 60)
    backlog.weigh(light)
    backlog.weigh(heavy)
    assert not heavy.gave_up

    light.kept += 1
    backlog.weigh(light)

    assert (light.gave_up, heavy.gave_up) == (False, True)
    assert backlog.total == 41


def test_a_tenant_with_many_light_ones_is_heavier_than_one_with_a_heavy_one() -> None:
    """Shares are a tenant's, however many sockets it spreads them over."""
    backlog = Backlog(100)
    honest = Watcher(1, 30)
    flood = [Watcher(2, 2) for _ in range(40)]
    for each in (honest, *flood):
        backlog.weigh(each)

    assert not honest.gave_up
    assert sum(each.gave_up for each in flood) > 0


def test_who_has_read_meanwhile_does_not_pay() -> None:
    backlog = Backlog(100)
    read, unread, late = Watcher(1, 90), Watcher(2, 10), Watcher(3, 5)
    backlog.weigh(read)
    backlog.weigh(unread)
    read.kept = 0
    backlog.weigh(late)

    assert not any(each.gave_up for each in (read, unread, late))
    assert backlog.total == 15


def test_all_for_which_something_is_kept_are_looked_after_and_weighed() -> None:
    backlog = Backlog(100)
    one, gone = Watcher(1, 90), Watcher(2, 5)
    backlog.weigh(one)
    backlog.weigh(gone)
    backlog.remove(gone)
    one.kept = 3
    backlog.look_after(12.5)

    assert (one.looked_at, gone.looked_at) == (12.5, None)
    assert backlog.total == 3


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60)), max_size=60))
def test_the_total_is_that_of_all_and_within_the_limit(changes: list[tuple[int, int]]) -> None:
    backlog = Backlog(100)
    watchers = [Watcher(each % 3) for each in range(10)]
    for number, kept in changes:
        watchers[number].kept = kept
        backlog.weigh(watchers[number])

        assert backlog.total == sum(each.kept for each in watchers) <= 100
