"""Places in all and for each."""

from __future__ import annotations

import pytest

from delivery.shares import Full, Shares


def test_each_gets_its_share_and_not_one_more() -> None:
    shares = Shares(in_all=10, each=2)
    shares.take("ann")
    shares.take("ann")
    with pytest.raises(Full) as full:
        shares.take("ann")
    shares.take("ben")

    assert full.value.own
    assert len(shares) == 3


def test_all_together_get_so_many_and_not_one_more() -> None:
    shares = Shares(in_all=2, each=2)
    shares.take("ann")
    shares.take("ben")
    with pytest.raises(Full) as full:
        shares.take("cleo")
    shares.give_back("ann")
    shares.take("cleo")

    assert not full.value.own
    assert len(shares) == 2


def test_who_has_gone_is_forgotten() -> None:
    """Tenants come and go for years; an entry each would be a leak."""
    shares = Shares(in_all=1, each=1)
    for who in range(10):
        shares.take(who)
        with pytest.raises(Full):
            shares.take(who + 1)
        shares.give_back(who)

    assert not shares._taken
