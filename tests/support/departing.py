"""A tenant that is to go, and what follows: in the pipeline, and in the API's background."""

from __future__ import annotations

import pytest
from api_builders import Caller, Served
from contract_world import a_world

from api.app import SERVICES
from api.background.departures import Departures
from servioticy.domain.model import StreamRef
from servioticy.domain.records import DeletionRecord
from servioticy.ports.accounts import Use
from servioticy.ports.batches import Batch
from servioticy.ports.effects import Delete


def compute(served: Served) -> None:
    """What the pipeline does with what is in the log: store, delete, and remove in pieces."""
    store = served.platform.store
    for partition in range(served.platform.log.partitions()):
        begin = store.begin(partition)[0]
        for offset, record in served.platform.records(partition, begin):
            effect = None
            if isinstance(record, DeletionRecord):
                effect = Delete(record.service_object)
            store.store(Batch(partition, offset, offset + 1, offset, effect=effect))
        while store.purge(partition, 100, 10**6) is not None:
            pass
        store.end(partition)


def turns(served: Served, most: int = 10_000) -> int:
    """How many pieces were removed, until nothing is left to remove or so many."""
    leaving, count = Departures(served.app.extensions[SERVICES], lambda: 1e9), 0
    leaving._next = 0.0
    while count < most and leaving.turn():
        count += 1
        leaving._next = 0.0
    return count


def tenant_of(served: Served, caller: Caller) -> int:
    found = served.platform.ports.tenants.tenant_of(caller.token)
    assert found is not None
    return found


@pytest.fixture
def going(served: Served) -> Caller:
    """A tenant with something of every kind."""
    world = a_world(served)
    tenant, stream = (
        tenant_of(served, world.tenant),
        StreamRef(world.names["filled"], "fahrenheit"),
    )
    # Of an aspect: what is measured is a row of its own.
    served.platform.store.account([Use(tenant, stream, tenant, computations={"emitted": 1})])
    return world.tenant
