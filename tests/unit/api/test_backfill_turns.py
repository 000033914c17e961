"""Whose backfill is begun next, where more wait than are computed at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from api.backfills import jobs
from api.backfills.apart import MOST_BEGUN
from api.backfills.jobs import BackfillJobs


class Asked:
    """What is there to do, as Postgres tells it: by the number of the tenant."""

    def __init__(self) -> None:
        self.tenants: dict[int, int] = {}

    def order(self, tenant: int) -> None:
        """Ask for another backfill: the one before it is done."""
        self.tenants[tenant] = self.tenants.get(tenant, 0) + 1

    def rows(self, statement: str, **_values: Any) -> list[tuple[Any, ...]]:
        assert statement == "unfinished"
        return [
            (f"{tenant}-{number}", tenant, "waiting", "so", "s", 0, 1, 0)
            for tenant, number in sorted(self.tenants.items())
        ]


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def worker(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> BackfillJobs:
    planning = SimpleNamespace(plan=lambda _wanted, job: (None, job))
    monkeypatch.setattr(jobs, "Planning", lambda _services: planning)
    quotas = SimpleNamespace(metered=lambda *_: None)
    ports = SimpleNamespace(statements=lambda _name: asked)
    services: Any = SimpleNamespace(quotas=quotas, ports=ports)
    backfills: Any = SimpleNamespace(steps=lambda _plan: iter(()))
    return BackfillJobs(services, backfills)


def test_who_orders_again_and_again_comes_after_who_waits(
    asked: Asked, worker: BackfillJobs
) -> None:
    """However much later that one has asked, and whatever its number is."""
    tenants = range(1, 2 * MOST_BEGUN + 3)
    for tenant in tenants:
        asked.order(tenant)
    served = set()
    for _round in range(3):
        worker._begin_others()
        began = {each.wanted.tenant for each in worker._under_way.values()}
        assert len(began) == MOST_BEGUN
        served |= began
        for tenant in began:
            asked.order(tenant)

    assert served == set(tenants)
