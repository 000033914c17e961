"""Operators let tenants have other numbers of sockets."""

from __future__ import annotations

import asyncio

import pytest

from delivery.admission.overrides import Overrides
from delivery.admission.owner_semaphore import OwnerSemaphore, SemaphoreFull
from servioticy.errors import Unavailable


class Said:
    def __init__(self) -> None:
        self.answers = True
        self.most = {7: 2, 8: 0}

    def of_all(self, quota: str) -> dict[int, int]:
        assert quota == "sockets"
        if not self.answers:
            raise Unavailable("away")
        return self.most


def test_places_follow_what_operators_say() -> None:
    said, admitted = Said(), OwnerSemaphore(10, 1)
    overrides = Overrides(said, {"sockets": admitted})
    asyncio.run(overrides.look())

    admitted.acquire(7)
    admitted.acquire(7)
    admitted.acquire(9)
    for tenant in (7, 8, 9):
        with pytest.raises(SemaphoreFull):
            admitted.acquire(tenant)
    said.answers = False
    with pytest.raises(Unavailable):
        asyncio.run(overrides.look())
    with pytest.raises(SemaphoreFull):
        admitted.acquire(8)
    said.answers, said.most = True, {}
    asyncio.run(overrides.look())
    admitted.acquire(8)
