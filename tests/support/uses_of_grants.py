"""Grants that are used: what both programs tell of them, and what the audit logs say then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from api_builders import Caller, Served

from servioticy.domain.model import StreamRef
from servioticy.ports.accounts import Use
from servioticy.ports.usage import Given
from servioticy.storage.usage import PostgresUsage


@dataclass
class World:
    """The accounts, as the pipeline and delivery settle them."""

    served: Served
    so: str

    def tenant(self, who: Caller) -> int:
        found = self.served.platform.ports.tenants.tenant_of(who.token)
        assert found is not None
        return found

    def rows(self, sql: str) -> list[Any]:
        return self.served.platform.database.rows(sql)

    def active(self) -> None:
        """The log has come to all grants."""
        self.rows("UPDATE grants SET active = true")

    def derived(self, who: Caller, composite: str, stream: str = "a", times: int = 2) -> None:
        """A composite has computed of updates of this stream of alice."""
        (owner,) = self.rows("SELECT id FROM tenants WHERE name = 'alice'")[0]
        source = StreamRef(self.so, stream)
        ended = {"emitted": times, "stale": 1}
        self.served.platform.store.account(
            [
                Use(
                    self.tenant(who),
                    StreamRef(composite, "c"),
                    owner,
                    source,
                    rows=times,
                    bytes=10 * times,
                    computations=ended,
                    microseconds=500_000,
                )
            ]
        )

    def delivered(self, who: Caller, times: int, stream: str = "a") -> None:
        (owner,) = self.rows("SELECT id FROM tenants WHERE name = 'alice'")[0]
        given = Given(self.tenant(who), owner, self.so, stream)
        PostgresUsage(self.served.platform.database).deliver({given: times})


@pytest.fixture
def world(served: Served, so: str) -> World:
    return World(served, so)


def told(who: Caller) -> list[tuple[str, str]]:
    """What the audit log has of grants, the oldest first."""
    found = who.ask("GET", "/audit?kind=grant").get_json()["data"]
    return [(each["action"], each["id"]) for each in reversed(found)]
