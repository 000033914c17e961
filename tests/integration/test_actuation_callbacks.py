"""Actuations as HTTP requests: from Postgres to real receivers, good and bad ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from unittest import mock

import orjson
import pytest
from callback_receivers import Receiver
from support.evaluating import an_evaluator

from delivery.actuations.couriers import Couriers
from delivery.admission.fair_executor import FairExecutor
from delivery.callbacks import http_client
from delivery.callbacks.http_client import HttpClient
from delivery.callbacks.receiver import REFUSALS, Callbacks
from delivery.callbacks.signing import signed_headers
from servioticy.domain.feed_slots import SLOTS
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.actuations import ActuationRequest
from servioticy.ports.change_store import NewServiceObject
from servioticy.ports.cursors import Claim
from servioticy.storage.actuations import PostgresActuations
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.database import Database
from servioticy.storage.roles import Role
from servioticy.storage.tenants import PostgresTenants

ALL = Claim("", frozenset(range(SLOTS)), frozenset(), SLOTS)
"""Of all tenants this process is the one that calls."""


class World:
    """Service Objects that name receivers, and couriers that call them."""

    def __init__(self, database: Database, delivery: Database) -> None:
        self.database = database
        tenants = PostgresTenants(database)
        self.tenant = tenants.tenant_of(tenants.create_tenant("acme")) or 0
        self.store = PostgresActuations(delivery)
        self.now = 1_000.0
        self.slept: list[float] = []

    def create(self, name: str, destination: str, **more: str) -> ServiceObjectKey:
        document = {
            "streams": {},
            "actions": [{"name": "blink", "timeout": 3600}],
            "actuationCallback": {"destination": destination, **more},
        }
        new = NewServiceObject(name, self.tenant, False, orjson.dumps(document), (), (), 1)
        PostgresChangeStore(self.database).create(new, 1)
        return ServiceObjectKey(self.tenant, name)

    def submit(self, key: ServiceObjectKey, count: int = 1) -> None:
        for number in range(count):
            asked = ActuationRequest(f"{key.id}-{number}", "blink", str(number))
            assert self.store.ask(key, asked, int(self.now * 1000))

    def states(self, key: ServiceObjectKey) -> list[tuple[str, str]]:
        sql = (
            "SELECT state, status FROM actuations WHERE service_object = %(id)s ORDER BY sequence"
        )
        return self.database.rows(sql, {"id": key.id})

    async def sleep(self, seconds: float) -> None:
        """Nobody waits really."""
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0.001)

    async def run(self, until: Callable[[], object]) -> None:
        client = HttpClient(["127.0.0.0/8"])
        await client.start()
        dead: Any = None
        callbacks = Callbacks(client, dead, an_evaluator(), clock=lambda: self.now)
        ask = FairExecutor("store", 2).run
        couriers = Couriers(self.store, callbacks, ask, lambda: ALL, lambda: self.now, self.sleep)
        couriers.start()
        try:
            async with asyncio.timeout(30):
                while not until():
                    await asyncio.sleep(0.01)
        finally:
            await couriers.stop()
            await client.stop()


@pytest.fixture
def world(dsn: str) -> Iterator[World]:
    database, delivery = Database(dsn), Database(dsn, role=Role.DELIVERY)
    with mock.patch.object(http_client, "SECONDS", 1.0):
        yield World(database, delivery)
    database.close()
    delivery.close()


def together(work: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await work()

    asyncio.run(run())


@pytest.mark.parametrize("format_", ["plain", "cloudevents", "cloudevents-binary"])
def test_a_receiver_gets_all_in_order_and_signed(world: World, format_: str) -> None:
    async def work() -> None:
        async with Receiver() as receiver:
            key = world.create("lamp", f"http://127.0.0.1:{receiver.port}/", format=format_)
            world.submit(key, 5)
            await world.run(lambda: {state for state, _ in world.states(key)} == {"delivered"})
            called = world.store.callback(key)
            assert called is not None
            for number, (_line, headers, body) in enumerate(receiver.requests):
                content = orjson.loads(body)
                content = content["data"] if format_ == "cloudevents" else content
                assert (content["id"], content["parameters"]) == (f"lamp-{number}", str(number))
                seconds = int(headers["webhook-timestamp"])
                wanted = signed_headers(
                    f"msg_lamp-{number}", seconds, body, [called.secrets[0]["secret"]]
                )
                assert {name: headers[name] for name in wanted} == wanted
            assert len(receiver.requests) == 5

    together(work)


@pytest.mark.parametrize(("status", "calls"), [(404, REFUSALS), (410, 1)])
def test_what_is_refused_for_good_has_failed_and_the_next_goes(
    world: World, status: int, calls: int
) -> None:
    async def work() -> None:
        async with Receiver(status) as receiver:
            key = world.create("lamp", f"http://127.0.0.1:{receiver.port}/")
            world.submit(key, 2)
            await world.run(lambda: {state for state, _ in world.states(key)} == {"failed"})
            assert world.states(key) == [("failed", f"failed: {status} As asked")] * 2
            assert len(receiver.requests) == 2 * calls

    together(work)


def test_who_cannot_be_reached_is_called_until_the_time_is_over(world: World) -> None:
    """With longer and longer pauses; and delays nobody else."""

    async def work() -> None:
        async with Receiver(503) as dead, Receiver() as well:
            first = world.create("dead", f"http://127.0.0.1:{dead.port}/")
            second = world.create("well", f"http://127.0.0.1:{well.port}/")
            world.submit(first)
            world.submit(second, 3)
            await world.run(lambda: len(well.requests) == 3 and world.now >= 4599.9)
            assert max(world.slept) > 100
            assert 10 < len(dead.requests) < 60

    together(work)
