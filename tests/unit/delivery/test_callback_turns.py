"""Connections for callbacks are shared, and handed out by tenants in turn, however many hang."""

from __future__ import annotations

import asyncio
from collections import Counter

from callback_receivers import Dead, an_outgoing
from support.evaluating import an_evaluator

from delivery.callbacks.http_client import AttemptResult, HttpClient
from delivery.callbacks.receiver import MAX_OF_A_TENANT, MAX_TO_A_HOST, Callbacks
from delivery.callbacks.requests import CallbackForm

SECONDS = 60.0


class Hanging(HttpClient):
    """Receivers that answer when the test says so."""

    def __init__(self, connections: int) -> None:
        super().__init__()
        self.connections = connections
        self.called: Counter[int] = Counter()
        self.order: list[int] = []
        self.answer: dict[int, asyncio.Event] = {}

    async def call(self, _request: object, tenant: int) -> AttemptResult:
        self.called[tenant] += 1
        self.order.append(tenant)
        await self.answer.setdefault(tenant, asyncio.Event()).wait()
        return AttemptResult(200, "")


def a_form(host: str) -> CallbackForm:
    document = b'{"id":"s","callback":"http","destination":"http://%s/"}' % host.encode()
    return CallbackForm.read("s", document)


async def until(is_so: object) -> None:
    async with asyncio.timeout(SECONDS):
        while not is_so():  # type: ignore[operator]
            await asyncio.sleep(0.001)


def attempts(callbacks: Callbacks, tenant: int, hosts: list[str]) -> list[asyncio.Task[object]]:
    return [
        asyncio.create_task(callbacks.attempt(tenant, a_form(host), an_outgoing()))
        for host in hosts
    ]


async def ended(client: Hanging, *tasks: asyncio.Task[object]) -> None:
    for tenant in {*client.called, 1, 2, 3}:
        client.answer.setdefault(tenant, asyncio.Event()).set()
    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*tasks)


def test_receivers_of_one_tenant_that_hang_leave_places_to_others() -> None:
    """A thousand of them have fifty connections, over however many hosts."""

    async def run() -> Counter[int]:
        client = Hanging(connections=MAX_OF_A_TENANT + 1)
        callbacks = Callbacks(client, Dead(), an_evaluator())
        many = attempts(callbacks, 1, [f"h{n}.example.org" for n in range(3 * MAX_OF_A_TENANT)])
        await until(lambda: client.called[1] == MAX_OF_A_TENANT)
        other = attempts(callbacks, 2, ["other.example.org"])
        await until(lambda: client.called[2] == 1)
        found = Counter(client.called)
        await ended(client, *many, *other)
        return found

    assert asyncio.run(run()) == {1: MAX_OF_A_TENANT, 2: 1}


def test_where_all_connections_are_taken_the_next_is_whose_turn_it_is() -> None:
    """And not the crowd's that came before."""

    async def run() -> list[int]:
        client = Hanging(connections=2)
        callbacks = Callbacks(client, Dead(), an_evaluator())
        crowd = attempts(callbacks, 1, [f"h{n}.example.org" for n in range(20)])
        await until(lambda: client.called[1] == 2)
        waiting = [*attempts(callbacks, 2, ["a.org"]), *attempts(callbacks, 3, ["b.org"])]
        await until(lambda: len(callbacks._places._waiting) == 3)
        await ended(client, *crowd, *waiting)
        return client.order

    order = asyncio.run(run())
    assert max(order.index(2), order.index(3)) <= 4, "one of the crowd's, and each other's"


def test_one_host_that_hangs_takes_few_of_its_tenants_places() -> None:
    async def run() -> Counter[int]:
        client = Hanging(connections=MAX_OF_A_TENANT)
        callbacks = Callbacks(client, Dead(), an_evaluator())
        hanging = attempts(callbacks, 1, ["hangs.example.org"] * 3 * MAX_TO_A_HOST)
        await until(lambda: client.called[1] == MAX_TO_A_HOST)
        well = attempts(callbacks, 1, ["well.example.org"])
        await until(lambda: client.called[1] == MAX_TO_A_HOST + 1)
        found = Counter(client.called)
        await ended(client, *hanging, *well)
        return found

    assert asyncio.run(run()) == {1: MAX_TO_A_HOST + 1}
