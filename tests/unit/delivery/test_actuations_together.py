"""What many lanes ask the store for goes as few questions, and each gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from support.memory_actuations import MemoryActuations

from delivery.actuations.together import MOST, Together
from servioticy.domain.actuations import State
from servioticy.domain.model import ServiceObjectKey
from servioticy.errors import Unavailable

T = TypeVar("T")
LAMPS = [ServiceObjectKey(1, f"lamp{number}") for number in range(MOST + 50)]


class World:
    """A store with an actuation for each lamp, which answers when it is let."""

    def __init__(self) -> None:
        self.store, self.asked = MemoryActuations(), list[int]()
        self.may_answer = asyncio.Event()
        self.together = Together(self.store, self.ask, lambda: 1)
        for key in LAMPS:
            self.store.submit(key, f"of {key.id}", 1, 1_000)

    async def ask(self, tenant: int, call: Callable[[], T]) -> T:
        self.asked.append(tenant)
        await self.may_answer.wait()
        return call()


def run(story: Callable[[World], Awaitable[None]]) -> None:
    async def told() -> None:
        world = World()
        await story(world)
        await world.together.stop()

    asyncio.run(told())


def test_while_one_is_answered_the_next_ones_gather() -> None:
    async def story(world: World) -> None:
        asking = [asyncio.create_task(world.together.waiting(key)) for key in LAMPS]
        await asyncio.sleep(0)
        world.may_answer.set()
        answers = await asyncio.gather(*asking)

        assert [[each.id for each in some] for some in answers] == [
            [f"of {key.id}"] for key in LAMPS
        ]
        assert len(world.asked) == 2  # no more are answered at once than there is room for

    run(story)


def test_who_waits_for_a_move_reads_what_follows_from_it() -> None:
    async def story(world: World) -> None:
        world.may_answer.set()
        key = LAMPS[0]
        await world.together.moved(key, [f"of {key.id}"], State.DELIVERED)

        assert await world.together.waiting(key) == ()

    run(story)


def test_tenants_ask_for_themselves() -> None:
    """One whose questions take long holds up no other."""

    async def story(world: World) -> None:
        other = ServiceObjectKey(2, "lamp0")
        asking = [asyncio.create_task(world.together.waiting(key)) for key in (LAMPS[0], other)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert world.asked == [1, 2]
        world.may_answer.set()
        assert [len(each) for each in await asyncio.gather(*asking)] == [1, 0]

    run(story)


def test_a_store_that_is_away_is_told_to_all_who_asked() -> None:
    async def story(world: World) -> None:
        world.store.is_away = True
        asking = [asyncio.create_task(world.together.waiting(key)) for key in LAMPS[:3]]
        gone = asyncio.create_task(world.together.waiting(LAMPS[4]))
        await asyncio.sleep(0)
        gone.cancel()
        world.may_answer.set()
        for each in asking:
            with pytest.raises(Unavailable):
                await each
        world.store.is_away = False
        assert len(await world.together.waiting(LAMPS[0])) == 1

    run(story)
