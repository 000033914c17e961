"""A tenant that has used up its deliveries loses nothing: the program itself, on real servers.

One that has used up its processor time is told that its conditions are not looked at.
"""

from __future__ import annotations

import json
import time

import pytest
from flaky_receiver import FlakyReceiver
from support.delivery_program import World, again, settings, world
from support.delivery_stores import WAIT_SECONDS
from waiting import until
from websockets.exceptions import InvalidStatus

from servioticy import bootstrap
from servioticy.domain.quotas import DELIVERIES, PROCESSOR_SECONDS, Exceeded, quotas
from servioticy.ports.change_store import NewServiceObject
from servioticy.ports.cursors import StoredCursor, write_cursor
from servioticy.settings import Settings
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.queries import queries
from servioticy.storage.quotas import PostgresQuotas
from servioticy.storage.tenants import PostgresTenants

__all__ = ["settings", "world"]

HTTP = "http://127.0.0.1"


def call(world: World, token: str, name: str, path: str, receiver: FlakyReceiver) -> None:
    """Let a tenant's subscription to the stream of an object call the receiver."""
    address = world.addresses.address(token, name, "data")
    assert address is not None
    url = f"{HTTP}:{receiver.port}/{path}"
    bootstrap.connect(world.settings).rows(
        queries("subscriptions")["subscribe"],
        {
            "id": path,
            "tenant": address.caller,
            "stream": address.stream_id,
            "service_object": None,
            "group": None,
            "document": json.dumps({"id": path, "callback": "http", "destination": url}),
            "callback": "http",
            "destination": url,
            "now": int(time.time() * 1000),
            "most": 10,
            "cursor": write_cursor(StoredCursor()),
            "expires_at": None,
        },
    )


def test_nothing_is_lost_while_deliveries_are_used_up_and_the_program_is_killed(
    world: World, settings: Settings
) -> None:
    """A tenant with two callbacks and a socket beside a neighbour, over restarts and a kill."""
    given = PostgresQuotas(bootstrap.connect(settings))
    given.give("ours", DELIVERIES, 4)
    with FlakyReceiver() as receiver:

        def times(path: str) -> list[int]:
            return receiver.first_times(f"/{path}")

        call(world, world.ours, "open", "ours", receiver)
        call(world, world.ours, "open", "more", receiver)
        call(world, world.theirs, "open", "theirs", receiver)
        world.emitted(1, 2, name="open")
        until(lambda: receiver.count() == 6, WAIT_SECONDS)
        world.program.terminate()  # it stores what it has counted
        world.program.wait()
        with again(settings):
            world.emitted(3, 4, name="open")
            until(lambda: times("theirs") == [1, 2, 3, 4], WAIT_SECONDS)
            with pytest.raises(InvalidStatus) as refused:
                world.watch(name="open")
            assert refused.value.response.status_code == 429
            assert times("ours") == times("more") == [1, 2]
        # It was killed.
        world.emitted(5, name="open")
        with again(settings):
            until(lambda: times("theirs") == [1, 2, 3, 4, 5], WAIT_SECONDS)
            assert times("ours") == times("more") == [1, 2]
            given.give("ours", DELIVERIES, 100)
            until(lambda: times("ours") == times("more") == [1, 2, 3, 4, 5], WAIT_SECONDS)
            with world.watch(name="open") as socket:
                world.emitted(6, name="open")
                assert json.loads(socket.recv(WAIT_SECONDS))["lastUpdate"] == 6


def test_an_hour_begins_with_deliveries_and_a_quota_of_none_has_none(world: World) -> None:
    database = bootstrap.connect(world.settings)
    given, quota = PostgresQuotas(database), quotas(Settings())[DELIVERIES]._replace(most=7)
    tenant = world.addresses.address(world.ours, "mine", "data")
    assert tenant is not None
    database.rows(
        "INSERT INTO used_amounts VALUES (%(t)s, this_hour(), 0, 0, 7)", {"t": tenant.caller}
    )

    found = given.used_up(quota)
    assert {each: (over.quota.most, over.retry_after <= 3600) for each, over in found.items()} == {
        tenant.caller: (7, True)
    }
    given.give("ours", DELIVERIES, 8)
    given.give("theirs", DELIVERIES, 0)
    assert {over.quota.most for over in given.used_up(quota).values()} == {0}
    given.give("ours", DELIVERIES, None)
    given.give("theirs", DELIVERIES, None)
    database.rows("UPDATE used_amounts SET hour = hour - 3600000")
    assert given.used_up(quota) == {}


ACTING = {
    "actions": [{"name": "open"}],
    "streams": {
        "data": {
            "channels": {"v": {"type": "number", "current-value": "1"}},
            "actions": [{"action": "open", "if": "{$output.channels.v.current-value} > 1"}],
        }
    },
}


def test_conditions_of_actions_are_charged_and_rest_when_that_is_used_up(
    world: World, settings: Settings
) -> None:
    """The program itself: what it has counted is stored when it ends, and asked when it begins."""
    database = bootstrap.connect(settings)
    tenant = PostgresTenants(database).tenant_of(world.ours) or 0
    document = json.dumps(ACTING).encode()
    new = NewServiceObject("tank", tenant, False, document, ("data",), (), 1)
    PostgresChangeStore(database).create(new, 1)

    def statuses() -> list[str]:
        rows = database.rows("SELECT status FROM actuations ORDER BY sequence")
        return [status for (status,) in rows]

    world.emitted(1, 2, name="tank")
    until(lambda: statuses() == ["Submitted"], WAIT_SECONDS)
    world.program.terminate()
    world.program.wait()

    ((stream, charged),) = database.rows("SELECT stream, processor_us FROM usage_hours")
    assert stream == "data" and charged > 0
    ((in_all,),) = database.rows("SELECT processor_us FROM used_amounts")
    assert in_all == charged
    PostgresQuotas(database).give("ours", PROCESSOR_SECONDS, 0)
    with again(settings):
        world.emitted(3, name="tank")
        until(lambda: len(statuses()) == 2, WAIT_SECONDS)
    quota = quotas(Settings())[PROCESSOR_SECONDS]._replace(most=0)
    assert statuses()[1] == f"failed: {Exceeded(quota, 60).message}"
    assert database.rows("SELECT processor_us FROM used_amounts") == [(charged,)]
