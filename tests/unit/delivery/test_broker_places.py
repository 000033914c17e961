"""Places at the API: nobody waits for another tenant's crowd, nor for those who have gone."""

from __future__ import annotations

import asyncio

import pytest

from broker.places import Places


async def ask(places: Places, tenant: int, done: list[int], gone: asyncio.Event) -> None:
    async with places.of(tenant, gone) as has_place:
        if has_place:
            await asyncio.sleep(0)
            done.append(tenant)


def test_one_request_waits_for_no_crowd() -> None:
    """A thousand of another tenant's came first: it waits for those that are under way."""

    async def scene() -> list[int]:
        places, done, here = Places(8, 8), list[int](), asyncio.Event()
        crowd = [asyncio.create_task(ask(places, 1, done, here)) for _ in range(1_000)]
        await asyncio.sleep(0)
        await ask(places, 2, done, here)
        found = done[:]
        await asyncio.gather(*crowd)
        return found

    assert len(asyncio.run(scene())) <= 3 * 8


def test_a_tenant_has_its_part_and_no_more() -> None:
    async def scene() -> tuple[int, int]:
        places, done, here = Places(10, 3), list[int](), asyncio.Event()
        most = now = 0

        async def hold() -> None:
            nonlocal most, now
            async with places.of(1, here):
                now += 1
                most = max(most, now)
                await asyncio.sleep(0)
                now -= 1
                done.append(1)

        await asyncio.gather(*(hold() for _ in range(50)))
        return most, len(done)

    assert asyncio.run(scene()) == (3, 50)


def test_what_was_asked_by_who_has_gone_is_dropped_while_it_waits() -> None:
    async def scene() -> tuple[int, int]:
        places, done, gone = Places(1, 1), list[int](), asyncio.Event()
        async with places.of(2):
            crowd = [asyncio.create_task(ask(places, 1, done, gone)) for _ in range(100)]
            await asyncio.sleep(0)
            gone.set()
            await asyncio.gather(*crowd)
        return len(done), len(places)

    assert asyncio.run(scene()) == (0, 0)


def test_who_is_cancelled_gives_its_place_back() -> None:
    """Also in the very moment in which it is given: else places would be lost for ever."""

    async def scene() -> None:
        places = Places(1, 1)
        async with places.of(1):
            waiting = asyncio.create_task(ask(places, 2, [], asyncio.Event()))
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(10), places.of(3) as has_place:
            assert has_place
        assert not places._used, "nothing is kept of a tenant without a place"

    asyncio.run(scene())


def test_with_nobody_gone_an_update_waits_for_its_place() -> None:
    async def scene() -> bool:
        places = Places(1, 1)
        async with places.of(1) as first:
            second = asyncio.create_task(ask(places, 1, (done := []), asyncio.Event()))
            await asyncio.sleep(0)
            assert first
            assert done == []
        await second
        return done == [1]

    assert asyncio.run(scene())
