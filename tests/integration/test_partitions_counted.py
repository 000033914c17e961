"""Whoever creates Service Objects does not count all that are there each time."""

from __future__ import annotations

from port_builders import a_service_object

from servioticy.storage.change_store import LOAD_SECONDS, PostgresChangeStore
from servioticy.storage.database import Database
from servioticy.storage.roles import Role
from servioticy.storage.tenants import PostgresTenants


def test_what_each_partition_has_is_counted_anew_after_a_while(dsn: str) -> None:
    """Until then a process knows what it has created itself, and no other one."""
    database, now = Database(dsn, role=Role.API), 0.0
    tenants = PostgresTenants(database)
    tenant = tenants.tenant_of(tenants.create_tenant("t")) or 0
    here = PostgresChangeStore(database, clock=lambda: now)
    elsewhere = PostgresChangeStore(database)

    def create(store: PostgresChangeStore, id_: str) -> int:
        with store.changing():
            return store.create(a_service_object(tenant, id_), 2).partition

    assert create(here, "so1") == 0
    assert [create(elsewhere, f"so{n}") for n in range(2, 7)] == [1, 0, 1, 0, 1]
    now = LOAD_SECONDS
    assert [create(here, "so7"), create(here, "so8")] == [1, 0]
    assert create(elsewhere, "so9") == 0
    now += LOAD_SECONDS / 2
    assert create(here, "so10") == 1
    database.close()
