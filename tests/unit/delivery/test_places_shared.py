"""A tenant's places at all processes together: what one takes others count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from memory.peers import Company, MemoryPeers

from delivery.admission.owner_semaphore import OwnerSemaphore, SemaphoreFull
from delivery.admission.places_shared import SharedPlaces
from delivery.peering import Peering

SOCKETS, SUBSCRIPTIONS = "sockets", "live-subscriptions"
MOST = 3


class Process:
    """One process, and what it has heard of others."""

    def __init__(self, company: Company, number: int) -> None:
        self.peers = MemoryPeers(company, number)
        self.peering = Peering(self.peers)
        self.places = OwnerSemaphore(100, MOST)
        self.subscriptions = OwnerSemaphore(100, MOST)
        by_name = {SOCKETS: self.places, SUBSCRIPTIONS: self.subscriptions}
        self.shared = SharedPlaces(self.peering, by_name)

    async def turn(self) -> None:
        """As half a second does, and a second: hear, look, tell."""
        self.peering._is_to_look = True
        await self.peering._listen()
        await self.shared.tell()


async def turns(*processes: Process) -> None:
    for _ in range(2):
        for each in processes:
            await each.turn()


def run(test: Callable[[Process, Process, Process], Awaitable[None]]) -> None:
    async def running() -> None:
        company = Company()
        processes = [Process(company, number) for number in (1, 2, 3)]
        await turns(*processes)
        await test(*processes)
        for each in processes:
            await each.peering.stop()

    asyncio.run(running())


def test_what_others_have_counts_and_what_they_give_back_does_not() -> None:
    async def test(one: Process, two: Process, three: Process) -> None:
        one.places.acquire(7)
        two.places.acquire(7)
        await turns(one, two, three)
        three.places.acquire(7)
        with pytest.raises(SemaphoreFull) as full:
            three.places.acquire(7)
        assert full.value.own and full.value.most == MOST
        three.places.acquire(8)
        three.subscriptions.acquire(7)

        one.places.release(7)
        await turns(one, two, three)
        three.places.acquire(7)
        assert three.places.elsewhere == {7: 1}

    run(test)


def test_who_was_killed_has_nothing_any_more() -> None:
    async def test(one: Process, two: Process, three: Process) -> None:
        for _ in range(MOST):
            one.places.acquire(7)
        await turns(one, two, three)
        with pytest.raises(SemaphoreFull):
            two.places.acquire(7)

        one.peers.die()
        await turns(two, three)
        two.places.acquire(7)
        assert not three.places.elsewhere - two.places.elsewhere

    run(test)


def test_what_is_heard_of_who_has_gone_by_then_does_not_stay() -> None:
    async def test(one: Process, two: Process, three: Process) -> None:
        one.places.acquire(7)
        await one.shared.tell()
        one.peers._company.there.remove(one.peers)
        await two.peering._look()

        await two.peering._listen()
        assert not two.places.elsewhere

    run(test)


def test_who_comes_learns_what_all_have_and_they_what_it_has() -> None:
    """Also one that had lost its connection, whose counts have changed meanwhile."""

    async def test(one: Process, two: Process, three: Process) -> None:
        one.places.acquire(7)
        two.places.acquire(7)
        await turns(one, two, three)

        one.peers.die()
        one.places.release(7)
        one.places.acquire(9)
        two.places.acquire(8)
        await turns(one, two, three)

        assert one.places.elsewhere == {7: 1, 8: 1}
        assert two.places.elsewhere == {9: 1}
        assert three.places.elsewhere == {7: 1, 8: 1, 9: 1}

    run(test)


def test_what_could_not_be_told_is_told_later() -> None:
    async def test(one: Process, two: Process, three: Process) -> None:
        one.places.acquire(7)
        one.peers._company.is_away = True
        with pytest.raises(Exception, match="away"):
            await one.shared.tell()
        one.peers._company.is_away = False
        await turns(one, two, three)

        assert two.places.elsewhere == {7: 1}

    run(test)


def test_alone_nothing_is_told() -> None:
    async def running() -> None:
        company = Company()
        one = Process(company, 1)
        await one.turn()
        fence = next(company.fences)
        one.places.acquire(7)
        await one.turn()

        assert next(company.fences) == fence + 1
        await one.peering.stop()

    asyncio.run(running())


def test_nothing_stays_of_tenants_that_have_gone() -> None:
    async def test(one: Process, two: Process, three: Process) -> None:
        for tenant in range(500):
            one.places._each = 1
            if tenant < 100:
                one.places.acquire(tenant)
        await turns(one, two, three)
        assert len(two.places.elsewhere) == 100
        for tenant in range(100):
            one.places.release(tenant)
        await turns(one, two, three)

        assert not two.places.elsewhere
        assert not two.shared._others[1]
        assert one.shared._told == {SOCKETS: {}, SUBSCRIPTIONS: {}}

    run(test)
