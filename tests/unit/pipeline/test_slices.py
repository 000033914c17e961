"""Records that take long go on a slice at a time, and leave nothing where they are given up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pipeline.changes.slices import OVERDUE_SECONDS, Slices
from pipeline.slice import LEAST_PART
from servioticy.domain.records import BackfillRecord
from servioticy.errors import Unavailable
from servioticy.ports.put_off import PutOff

RECORD = BackfillRecord("so", "job")
SLICES = 5


class Swaps:
    """A store of which each slice of a swap takes a second, and who is told when one is over."""

    def __init__(self, fails: Callable[[], None] = lambda: None) -> None:
        self.now = 0.0
        self.begun = self.given_up = 0
        self._fails = fails

    def swapped(self, _job: str, *, at_once: bool) -> Iterator[None]:
        assert not at_once
        self.begun += 1
        try:
            for _ in range(SLICES):
                self.now += 1
                yield
        except GeneratorExit:
            self.given_up += 1
            self._fails()
            raise


def slices_of(store: Any) -> Slices:
    return Slices(store, lambda: store.now)


def late(tenant: int = 1) -> PutOff:
    return PutOff(7, tenant, "so", b"")


def test_it_goes_on_where_it_was() -> None:
    """As many slices as fit; the record is known meanwhile, and read no more."""
    store = Swaps()
    slices = slices_of(store)

    went = [slices.go_on(late(), RECORD, 2.0) for _ in range(3)]

    assert went == [False, False, True]
    assert (store.now, store.begun, store.given_up) == (SLICES, 1, 0)
    assert slices.begun(1) is None


def test_where_somebody_waits_it_is_a_part_of_a_slice_at_a_time() -> None:
    """Somebody always waits where there are hundreds of updates a second: or it took for ever."""
    store = Swaps()
    slices = Slices(store, lambda: store.now, lambda: True)  # type: ignore[arg-type]

    went = [slices.go_on(late(), RECORD, 1.0 / LEAST_PART) for _ in range(SLICES + 1)]

    assert went == [False] * SLICES + [True]


def test_what_is_overdue_gives_way_to_nobody() -> None:
    store = Swaps()
    slices = Slices(store, lambda: store.now, lambda: True)  # type: ignore[arg-type]
    assert not slices.go_on(late(), RECORD, 1.0)

    store.now += OVERDUE_SECONDS
    assert slices.go_on(late(), RECORD, 99.0)


def test_each_tenant_has_its_own() -> None:
    store = Swaps()
    slices = slices_of(store)
    for tenant in (1, 2):
        assert not slices.go_on(late(tenant), RECORD, 1.0)

    slices.keep([2])

    assert (slices.begun(1), slices.begun(2)) == (None, late(2))
    assert store.given_up == 1


@pytest.mark.parametrize("error", [None, Unavailable("the connection is gone")])
def test_what_is_given_up_is_begun_anew(error: Exception | None) -> None:
    """Also where it cannot even be said that it is given up."""

    def fails() -> None:
        if error is not None:
            raise error

    store = Swaps(fails)
    slices = slices_of(store)
    assert not slices.go_on(late(), RECORD, 1.0)

    slices.drop(1)
    assert not slices.go_on(late(), RECORD, 1.0)

    assert (store.begun, store.given_up) == (2, 1)


def test_the_oldest_that_is_open_for_too_long_is_told() -> None:
    """Since it has begun, not since its last slice; until it has come to its end."""
    store = Swaps()
    slices = slices_of(store)
    for tenant in (2, 1):
        slices.go_on(late(tenant), RECORD, 1.0)
    store.now = OVERDUE_SECONDS - 0.5
    assert slices.overdue() is None
    store.now += 0.5
    assert slices.overdue() == 2
    slices.go_on(late(2), RECORD, 1.0)
    assert slices.overdue() == 2
    assert slices.go_on(late(2), RECORD, 99.0)
    assert slices.overdue() == 1
    slices.drop(1)
    assert slices.overdue() is None


def test_every_backfill_takes_long_for_somebody_may_come() -> None:
    assert slices_of(Swaps()).is_long(RECORD, contested=False)
