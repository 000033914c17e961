"""Turns in the loop: who has much to do waits for itself, and another for a few turns."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from delivery.admission.fair_places import FairPlaces
from delivery.turns import AT_ONCE, CATCH_UP, Turns


def test_a_thousand_that_are_ready_hold_another_up_for_one_round() -> None:
    async def run() -> list[str]:
        turns, had = Turns(), list[str]()

        async def work(owner: str) -> None:
            await turns.take(owner)
            had.append(owner)

        many = [asyncio.create_task(work("much")) for _ in range(1_000)]
        while len(had) < 3:
            await asyncio.sleep(0)
        other = asyncio.create_task(work("other"))
        await asyncio.gather(other, *many)
        return had

    had = asyncio.run(run())
    assert len(had) == 1_001
    assert had.index("other") <= 6


def test_in_one_round_of_the_loop_only_a_few_have_turns() -> None:
    """However many tenants there are: each round looks at sockets again."""

    async def run() -> list[int]:
        turns, counts, stop = Turns(), list[int](), False
        had = 0

        async def work(owner: int) -> None:
            nonlocal had
            await turns.take(owner)
            had += 1

        def look() -> None:
            counts.append(had)
            if not stop:
                asyncio.get_running_loop().call_soon(look)

        tasks = [asyncio.create_task(work(owner)) for owner in range(100)]
        look()
        await asyncio.gather(*tasks)
        stop = True
        return counts

    counts = asyncio.run(run())
    most = max(after - before for before, after in itertools.pairwise(counts))
    assert 1 <= most <= AT_ONCE


def test_who_has_gone_loses_its_turn_and_nobody_elses() -> None:
    async def run() -> int:
        turns = Turns()
        await turns.take("a")
        waiting = [asyncio.create_task(turns.take("a")) for _ in range(5)]
        await asyncio.sleep(0)
        for each in waiting[:4]:
            each.cancel()
        await waiting[4]
        await turns.take("b")
        return turns.taken

    assert asyncio.run(run()) <= 4


def test_a_freed_place_goes_to_who_has_waited_for_none_yet() -> None:
    """Four tenants keep all places, with hundreds waiting; a fifth gets one of the next five."""

    async def run() -> list[int]:
        places, had, ends = FairPlaces(20, 5), list[int](), asyncio.Semaphore(0)

        async def call(owner: int) -> None:
            async with places.place(owner):
                had.append(owner)
                await ends.acquire()

        tasks = [asyncio.create_task(call(owner)) for owner in range(4) for _ in range(100)]
        await asyncio.sleep(0)
        assert len(had) == 20
        tasks.append(asyncio.create_task(call(9)))
        await asyncio.sleep(0)
        before = len(had)
        while 9 not in had:
            ends.release()
            await asyncio.sleep(0.001)
        after = had[before:]
        for _ in tasks:
            ends.release()
        await asyncio.gather(*tasks)
        assert not places._in_use and places._free == 20
        return after

    assert asyncio.run(run()).index(9) <= 4


def test_an_owner_has_no_more_places_than_it_may_and_leaves_the_others_free() -> None:
    async def run() -> None:
        places = FairPlaces(10, 2)
        for _ in range(2):
            await places.acquire("a")
        waits = asyncio.create_task(places.acquire("a"))
        await asyncio.sleep(0)
        assert not waits.done()
        await places.acquire("b")
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        places.release("a")
        await places.acquire("a")
        for owner in ("a", "a", "b"):
            places.release(owner)
        assert not places._in_use and not places._waiting

    asyncio.run(run())


class GivenTime(asyncio.SelectorEventLoop):
    """Its clock stands, but for what the test adds."""

    now = 0.0

    def time(self) -> float:
        return self.now


def test_rounds_that_came_late_are_made_up_for_up_to_a_bound() -> None:
    """On a busy machine the loop is woken late: strangers would have a tenth of their turns."""

    async def scene() -> list[int]:
        turns, took = Turns(at_once=1, seconds=0.001), list[int]()
        for number in range(3 * CATCH_UP):
            turns.ask("address", lambda number=number: took.append(number) is None)
        assert took == [0]
        loop.now += 0.005 * CATCH_UP  # it is not woken
        while len(took) == 1:
            await asyncio.sleep(0)
        for _ in range(CATCH_UP):  # no more of them, as no time passes
            await asyncio.sleep(0)
        return took

    with asyncio.Runner(loop_factory=GivenTime) as runner:
        loop = runner.get_loop()
        assert runner.run(scene()) == list(range(CATCH_UP + 1))
