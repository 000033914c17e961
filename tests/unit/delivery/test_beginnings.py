"""Where the topic begins is asked once, however many come."""

from __future__ import annotations

import asyncio
import threading
from typing import cast

import pytest

from delivery.feeds.beginnings import KEEP_SECONDS, Beginnings
from servioticy.errors import Unavailable
from servioticy.ports.emitted import EmittedPages


class Topic:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.is_away = False
        self.let = threading.Event()

    def begins_at(self, partition: int) -> int:
        self.asked.append(partition)
        self.let.wait(10)
        if self.is_away:
            raise Unavailable("away")
        return 7 + partition


class World:
    def __init__(self) -> None:
        self.topic = Topic()
        self.now = 0.0
        self.beginnings = Beginnings(cast(EmittedPages, self.topic), lambda: self.now)


def test_a_crowd_asks_once_a_partition_and_moment() -> None:
    """A thousand clients of one tenant that go on had a thousand questions before another's."""

    async def run() -> None:
        world = World()
        crowd = [asyncio.create_task(world.beginnings.of(0)) for _ in range(1_000)]
        another = asyncio.create_task(world.beginnings.of(1))
        await asyncio.sleep(0.05)
        assert sorted(world.topic.asked) == [0, 1]

        world.topic.let.set()
        assert await asyncio.gather(*crowd) == [7] * 1_000
        assert await another == 8
        world.now += KEEP_SECONDS - 0.1
        await world.beginnings.of(0)
        assert sorted(world.topic.asked) == [0, 1]
        world.now += 0.1
        await world.beginnings.of(0)
        assert sorted(world.topic.asked) == [0, 0, 1]

    asyncio.run(run())


def test_who_goes_takes_the_answer_from_nobody() -> None:
    async def run() -> None:
        world = World()
        first, second = (asyncio.create_task(world.beginnings.of(0)) for _ in range(2))
        await asyncio.sleep(0.01)
        first.cancel()
        world.topic.let.set()

        assert await second == 7
        assert world.topic.asked == [0]

    asyncio.run(run())


def test_a_broker_that_is_slow_is_asked_one_question_at_a_time() -> None:
    """Each moment's took a thread, while all waited for the same lock."""

    async def run() -> None:
        world = World()
        waiting = []
        for _ in range(5):
            waiting.append(asyncio.create_task(world.beginnings.of(0)))
            await asyncio.sleep(0.01)
            world.now += KEEP_SECONDS
        assert world.topic.asked == [0]

        world.topic.let.set()
        assert await asyncio.gather(*waiting) == [7] * 5

    asyncio.run(run())


def test_what_was_not_answered_is_asked_again_at_once() -> None:
    async def run() -> None:
        world = World()
        world.topic.let.set()
        world.topic.is_away = True
        with pytest.raises(Unavailable):
            await world.beginnings.of(0)
        world.topic.is_away = False

        assert await world.beginnings.of(0) == 7

    asyncio.run(run())
