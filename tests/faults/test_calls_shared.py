"""Calls with actuations: two processes of delivery share them by tenants, and one is killed."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import orjson
import pytest
from support.delivery_program import World, again, settings, until_held, world
from support.flaky_receiver import FlakyReceiver
from waiting import until

from servioticy import bootstrap
from servioticy.domain.feed_slots import SLOTS, of_tenant, slot_of
from servioticy.domain.model import ServiceObjectKey
from servioticy.embedded import tcp_ports as ports
from servioticy.ports.actuations import NewActuation, Submission
from servioticy.ports.change_store import NewServiceObject
from servioticy.settings import changed
from servioticy.storage.actuations import PostgresActuations
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.tenants import PostgresTenants

__all__ = ["settings", "world"]

TENANTS, ACTUATIONS = 8, 40
BLINK = {"name": "blink"}
PAUSE_SECONDS = 0.02
SECONDS = 120.0


@pytest.fixture
def receiver() -> Iterator[FlakyReceiver]:
    with FlakyReceiver(0.0, lambda said: int(said["parameters"])) as found:
        yield found


def a_lamp(world: World, receiver: FlakyReceiver, number: int) -> ServiceObjectKey:
    """Of a tenant of its own, which is called with what it is asked to do."""
    database = bootstrap.connect(world.settings)
    tenants, id_ = PostgresTenants(database), f"lamp{number}"
    tenant = tenants.tenant_of(tenants.create_tenant(id_)) or 0
    document = orjson.dumps({"streams": {}, "actions": [BLINK]})
    new = NewServiceObject(id_, tenant, False, document, (), (), 1)
    PostgresChangeStore(database).create(new, 1)
    database.rows(
        "INSERT INTO actuation_callbacks (service_object, tenant_id, callback, secrets)"
        " VALUES (%(id)s, %(tenant)s, %(callback)s, '[]')",
        {
            "id": id_,
            "tenant": tenant,
            "callback": f'{{"destination": "http://127.0.0.1:{receiver.port}/{id_}"}}',
        },
    )
    return ServiceObjectKey(tenant, id_)


@pytest.mark.timeout(600)
def test_who_is_left_calls_for_all_tenants(world: World, receiver: FlakyReceiver) -> None:
    """All that was asked for, in order; and twice what was under way when one was killed."""
    lamps = [a_lamp(world, receiver, number) for number in range(TENANTS)]
    slots = [slot_of(of_tenant(each.tenant), SLOTS) for each in lamps]
    assert {each < SLOTS // 2 for each in slots} == {True, False}, "each process calls for some"
    store = PostgresActuations(bootstrap.connect(world.settings))

    with again(changed(world.settings, live_port=ports.free())) as second:
        until_held(world, SLOTS // 2, SLOTS // 2)
        for at in range(ACTUATIONS):
            if at == ACTUATIONS // 3:
                random.choice((world.program, second)).kill()
            for each in lamps:
                new = NewActuation(f"{each.id}-{at}", BLINK, str(at), 3_600)
                asked = store.submit(each, new, int(time.time() * 1000))
                assert asked is Submission.MADE
            time.sleep(PAUSE_SECONDS)
        until(lambda: receiver.count() >= TENANTS * ACTUATIONS, SECONDS)

    for each in lamps:
        assert receiver.first_times(f"/{each.id}") == [*range(ACTUATIONS)]
        assert receiver.repeats(f"/{each.id}") <= 1
