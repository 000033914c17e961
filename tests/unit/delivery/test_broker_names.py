"""Clients of one name at several processes: the last that came stays, and only that one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import cast

import pytest
from memory.peers import Company, MemoryPeers

from broker.client import Client
from broker.names import Names
from delivery.peering import Peering
from servioticy.domain.access import Scope


class PlayedClient:
    """As much of a client as names know of it."""

    def __init__(self, name: str, tenant: int = 1, scope: Scope | None = None) -> None:
        class Identity:
            pass

        self.name = name
        self.identity = Identity()
        self.identity.tenant = tenant  # type: ignore[attr-defined]
        self.identity.scope = scope or Scope()  # type: ignore[attr-defined]
        self.is_open = True

    def taken_over(self) -> None:
        self.is_open = False


class Process:
    """One process of the broker."""

    def __init__(self, company: Company, number: int) -> None:
        self.peers = MemoryPeers(company, number)
        self.peering = Peering(self.peers)
        self.names = Names(self.peering)

    def come(
        self, name: str = "pump", tenant: int = 1, scope: Scope | None = None
    ) -> PlayedClient:
        client = PlayedClient(name, tenant, scope)
        self.names.take(cast("Client", client))
        return client

    async def hear(self) -> None:
        await self.peering._listen()

    async def tell(self) -> None:
        if self.names._is_to_tell.is_set():
            await self.names._tell()


def run(test: Callable[[Process, Process], Awaitable[None]]) -> None:
    async def running() -> None:
        company = Company()
        one, two = (Process(company, number) for number in (1, 2))
        for each in (one, two, one):
            await each.hear()
        await test(one, two)
        for each in (one, two):
            await each.peering.stop()

    asyncio.run(running())


def test_who_comes_to_another_process_takes_over() -> None:
    async def test(one: Process, two: Process) -> None:
        before = one.come()
        await one.tell()
        await two.hear()
        after = two.come()
        assert before.is_open
        await two.tell()
        await one.hear()

        assert not before.is_open
        assert after.is_open

    run(test)


@pytest.mark.parametrize(
    "other", [{"name": "pipe"}, {"tenant": 2}, {"scope": Scope("pump")}, {"name": ""}]
)
def test_who_is_somebody_else_takes_nothing_over(other: dict[str, object]) -> None:
    async def test(one: Process, two: Process) -> None:
        before = one.come()
        await one.tell()
        two.come(**other)  # type: ignore[arg-type]
        await two.tell()
        await one.hear()

        assert before.is_open

    run(test)


def test_of_two_that_come_at_the_same_time_one_stays() -> None:
    """Neither has heard of the other when it tells: the fence decides, however they hear."""

    async def test(one: Process, two: Process) -> None:
        first, second = one.come(), two.come()
        await one.tell()
        await two.tell()
        await two.hear()
        await one.hear()

        assert (first.is_open, second.is_open) == (False, True)

    run(test)


def test_what_is_heard_before_ones_own_fence_is_known_counts() -> None:
    async def test(one: Process, two: Process) -> None:
        first, second = one.come(), two.come()
        await one.tell()
        await two.hear()  # nobody knows of the second yet
        assert second.is_open
        await two.tell()
        await one.hear()

        assert (first.is_open, second.is_open) == (False, True)

    run(test)


def test_who_had_not_heard_for_a_while_learns_who_has_come_since() -> None:
    async def test(one: Process, two: Process) -> None:
        before = one.come()
        await one.tell()
        one.peers.die()
        after = two.come()
        await two.tell()
        assert before.is_open

        await one.hear()  # from now on again
        await one.tell()
        await two.hear()
        assert after.is_open
        await two.tell()
        await one.hear()
        assert (before.is_open, after.is_open) == (False, True)

    run(test)


@pytest.mark.parametrize("seed", range(50))
def test_in_the_end_exactly_the_last_one_is_there(seed: int) -> None:
    """Over any order of coming, telling, hearing and losing the connection."""

    async def test(one: Process, two: Process) -> None:
        chance, clients = Random(seed), list[PlayedClient]()
        for _ in range(60):
            process = chance.choice((one, two))
            what = chance.random()
            if what < 0.3:
                clients.append(process.come())
                await process.tell()  # as it does at once, where Postgres is there
            elif what < 0.4:
                process.peers.die()
            else:
                await process.hear()
                await process.tell()
        for _ in range(4):
            for process in (one, two):
                await process.hear()
                await process.tell()

        assert [each.is_open for each in clients] == [False] * (len(clients) - 1) + [True]

    run(test)


def test_nothing_stays_of_who_has_gone() -> None:
    async def test(one: Process, two: Process) -> None:
        clients = [one.come(f"c{number}") for number in range(50)]
        await one.tell()
        for each in clients:
            one.names.leave(cast("Client", each))

        assert not (one.names._held or one.names._untold or one.names._again)

    run(test)
