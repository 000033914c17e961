"""Places in all and for each."""

from __future__ import annotations

import pytest

from delivery.admission.owner_semaphore import OwnerSemaphore, SemaphoreFull


def test_each_gets_its_share_and_not_one_more() -> None:
    places = OwnerSemaphore(in_all=10, each=2)
    places.acquire("ann")
    places.acquire("ann")
    with pytest.raises(SemaphoreFull) as full:
        places.acquire("ann")
    places.acquire("ben")

    assert full.value.own
    assert len(places) == 3


def test_all_together_get_so_many_and_not_one_more() -> None:
    places = OwnerSemaphore(in_all=2, each=2)
    places.acquire("ann")
    places.acquire("ben")
    with pytest.raises(SemaphoreFull) as full:
        places.acquire("cleo")
    places.release("ann")
    places.acquire("cleo")

    assert not full.value.own
    assert len(places) == 2


def test_who_has_gone_is_forgotten() -> None:
    """Tenants come and go for years; an entry each would be a leak."""
    places = OwnerSemaphore(in_all=1, each=1)
    for who in range(10):
        places.acquire(who)
        with pytest.raises(SemaphoreFull):
            places.acquire(who + 1)
        places.release(who)

    assert not places._in_use
