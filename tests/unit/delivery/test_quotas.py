"""Places in all and for each."""

from __future__ import annotations

import pytest

from delivery.admission.quotas import Quota, QuotaExceeded


def test_each_gets_its_share_and_not_one_more() -> None:
    quota = Quota(in_all=10, each=2)
    quota.acquire("ann")
    quota.acquire("ann")
    with pytest.raises(QuotaExceeded) as full:
        quota.acquire("ann")
    quota.acquire("ben")

    assert full.value.own
    assert len(quota) == 3


def test_all_together_get_so_many_and_not_one_more() -> None:
    quota = Quota(in_all=2, each=2)
    quota.acquire("ann")
    quota.acquire("ben")
    with pytest.raises(QuotaExceeded) as full:
        quota.acquire("cleo")
    quota.release("ann")
    quota.acquire("cleo")

    assert not full.value.own
    assert len(quota) == 2


def test_who_has_gone_is_forgotten() -> None:
    """Tenants come and go for years; an entry each would be a leak."""
    quota = Quota(in_all=1, each=1)
    for who in range(10):
        quota.acquire(who)
        with pytest.raises(QuotaExceeded):
            quota.acquire(who + 1)
        quota.release(who)

    assert not quota._in_use
