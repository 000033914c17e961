"""Durable subscriptions get everything, in order, whatever their receivers do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest import mock

import pytest
from memory_feeds import PARTITIONS, USED_UP, MemoryCursors, MemoryHistory, MemoryTopic

from delivery.admission.fair_executor import FairExecutor
from delivery.backlog import Backlog
from delivery.fanout import FanOut
from delivery.feeds import feed as feed_module
from delivery.feeds import feeds as module
from delivery.feeds.feed import Feed
from delivery.feeds.feeds import Feeds
from delivery.feeds.rereading import PAGES_A_TURN
from delivery.watchers import Watchers
from servioticy.domain.model import StreamRef
from servioticy.ports.cursors import StoredCursor

FLOW, OTHER = StreamRef("pump", "flow"), StreamRef("lamp", "state")
SECONDS = 20.0


class World:
    """A topic that grows, and a delivery process that comes and goes."""

    def __init__(self) -> None:
        self.topic = MemoryTopic()
        self.cursors = MemoryCursors()
        self.got: list[int] = []
        """The timestamps that the receiver got, in order."""
        self.pause = 0.0
        self.holds = asyncio.Event()
        self.holds.set()
        self.feeds: Feeds | None = None
        self.fanout: FanOut | None = None
        self.most_kept = 0

    async def receive(self, feed: Feed) -> None:
        while True:
            delivery = await feed.take_patiently()
            self.most_kept = max(self.most_kept, feed.kept_bytes())
            await self.holds.wait()
            self.got.append(delivery.update.timestamp)
            if self.pause:
                await asyncio.sleep(self.pause)
            feed.done(delivery)

    @asynccontextmanager
    async def running(self, max_backlog: int = 10**9) -> AsyncIterator[None]:
        watchers: Watchers = Watchers()
        self.fanout = FanOut(watchers.of)
        self.fanout.begin_at(self.topic.ends())
        self.fanout.start()
        self.feeds = Feeds(
            self.cursors,
            self.topic,
            MemoryHistory(self.topic, FLOW),
            self.fanout,
            watchers,
            Backlog(max_backlog),
            FairExecutor("history", 1),
            {"test": self.receive},
        )
        self.feeds.start()
        try:
            yield
        finally:
            await self.feeds.stop()

    def emit(self, *times: int, stream: StreamRef = FLOW, partition: int = 0) -> None:
        records = [self.topic.append(partition, stream, at) for at in times]
        if self.fanout is not None and self.feeds is not None:
            self.fanout.publish(records)

    async def until_got(self, *times: int) -> None:
        async with asyncio.timeout(SECONDS):
            while not set(times) <= set(self.got):
                await asyncio.sleep(0.002)

    async def until_fed(self, id_: str = "s") -> Feed:
        async with asyncio.timeout(SECONDS):
            while self.feeds is None or id_ not in self.feeds.feeds:
                await asyncio.sleep(0.002)
        return self.feeds.feeds[id_]


@pytest.fixture(autouse=True)
def _quick() -> object:
    names = {"STORE_SECONDS": 0.001, "LOOK_SECONDS": 0.001, "PASS_OVER_SECONDS": 0.01}
    with mock.patch.multiple(module, **names):
        yield


def in_order(got: list[int]) -> bool:
    """Whether each came first after all that are smaller."""
    return list(dict.fromkeys(got)) == sorted(set(got))


def test_the_first_update_comes_though_it_is_emitted_while_the_topic_is_asked() -> None:
    """Nothing had come for a while, so nothing tells where a new subscription begins."""

    async def run() -> None:
        world = World()
        ask = world.topic.offsets_at

        def meanwhile(time_ms: int) -> dict[int, int]:
            found = ask(time_ms)
            world.emit(1)
            return found

        async with world.running():
            with mock.patch.object(world.topic, "offsets_at", meanwhile):
                world.cursors.add("s", FLOW)
                await world.until_got(1)
        assert world.got == [1]

    asyncio.run(run())


def test_what_comes_is_delivered_in_order_and_noted() -> None:
    async def run() -> None:
        world = World()
        world.cursors.add("s", FLOW)
        async with world.running():
            await world.until_fed()
            world.emit(*range(1, 50))
            world.emit(7, stream=OTHER, partition=1)
            await world.until_got(49)
            async with asyncio.timeout(SECONDS):
                while world.cursors.rows["s"].cursor.offsets != {0: 49, 1: 1}:
                    await asyncio.sleep(0.002)
        assert world.got == list(range(1, 50))

    asyncio.run(run())


def test_what_came_while_nobody_delivered_comes_later() -> None:
    async def run() -> None:
        world = World()
        world.cursors.add("s", FLOW)
        async with world.running():
            await world.until_fed()
            world.emit(1, 2)
            await world.until_got(2)
        world.feeds = None
        world.emit(*range(3, 40))
        async with world.running():
            await world.until_got(39)
            world.emit(40)
            await world.until_got(40)
        assert world.got == list(range(1, 41))

    asyncio.run(run())


def test_a_receiver_that_hangs_costs_no_more_than_its_queue() -> None:
    async def run() -> None:
        world = World()
        world.cursors.add("s", FLOW)
        world.cursors.add("t", OTHER)
        with mock.patch.object(feed_module.Feed.__init__, "__defaults__", (2000,)):
            async with world.running():
                feed = await world.until_fed()
                world.holds.clear()
                world.emit(*range(1, 500))
                await asyncio.sleep(0.05)
                assert feed.kept_bytes() < 3000
                assert not feed.is_live
                world.holds.set()
                await world.until_got(499)
                world.emit(500)
                await world.until_got(500)
        assert world.got == list(range(1, 501))

    asyncio.run(run())


def test_the_history_comes_first_and_nothing_twice() -> None:
    async def run() -> None:
        world = World()
        world.emit(*range(1, 30))
        world.cursors.add("s", FLOW, cursor=StoredCursor(history={FLOW: 10}))
        async with world.running():
            feed = await world.until_fed()
            world.emit(*range(30, 60))
            await world.until_got(59)
            await asyncio.sleep(0.02)
            assert feed.is_live
        assert world.got == list(range(11, 60))
        assert world.cursors.rows["s"].cursor.history == {}

    asyncio.run(run())


def test_only_what_was_accepted_after_it_was_made() -> None:
    async def run() -> None:
        world = World()
        world.emit(1, 2, 3)
        world.cursors.add("s", FLOW, cursor=StoredCursor(since={0: 2}))
        async with world.running():
            await world.until_got(3)
        assert world.got == [3]

    asyncio.run(run())


def test_many_new_ones_ask_the_topic_once_where_to_begin() -> None:
    """It takes a while: a tenant with a thousand of them held up all others."""

    async def run() -> None:
        world = World()
        for number in range(50):
            world.cursors.add(f"s{number}", FLOW)
        async with world.running():
            world.emit(1)
            async with asyncio.timeout(SECONDS):
                while len(world.got) < 50:
                    await asyncio.sleep(0.002)
        assert world.topic.times_asked <= 2

    asyncio.run(run())


def test_it_stands_by_while_another_process_delivers() -> None:
    async def run() -> None:
        world = World()
        world.cursors.add("s", FLOW)
        world.cursors.is_claimed_by_others = True
        async with world.running():
            await asyncio.sleep(0.02)
            assert world.feeds is not None
            assert not world.feeds.feeds
            world.emit(1)
            world.cursors.is_claimed_by_others = False
            await world.until_got(1)
            world.cursors.is_claimed_by_others = True
            async with asyncio.timeout(SECONDS):
                while world.feeds.feeds:
                    await asyncio.sleep(0.002)

    asyncio.run(run())


REST = {1: USED_UP}
"""Of the tenant of all subscriptions here."""


def test_nothing_is_given_while_its_tenant_rests_and_all_of_it_afterwards() -> None:
    """Without a limit in memory: what waits, waits in the topic, also through a crash."""

    async def run() -> None:
        world = World()
        world.cursors.add("s", FLOW)
        with mock.patch.object(feed_module.Feed.__init__, "__defaults__", (2000,)):
            async with world.running():
                feed = await world.until_fed()
                world.emit(1, 2)
                await world.until_got(2)
                assert world.fanout is not None
                world.fanout.resting.change(REST)
                world.emit(*range(3, 500))
                await asyncio.sleep(0.05)
                assert feed.kept_bytes() < 3000
                feed.drop()  # memory runs short
                await asyncio.sleep(0.02)
                pages = world.topic.pages_read
                world.emit(*range(500, 600))
                await asyncio.sleep(0.05)
                assert world.got == [1, 2]
                assert world.topic.pages_read == pages, "nothing is read for nobody"
                world.fanout.resting.change({})
                await world.until_got(599)
        assert world.got == list(range(1, 600))

    asyncio.run(run())


def test_what_is_given_is_counted_when_it_is_taken() -> None:
    """Else what waited would be free, and what is dropped and read again would not."""

    async def run() -> None:
        world = World()
        world.emit(1, 2)
        world.cursors.add("s", FLOW)
        noted: list[tuple[int, int, StreamRef]] = []
        async with world.running():
            assert world.fanout is not None
            world.fanout.note = lambda *what: noted.append(what)
            world.holds.clear()
            world.emit(3)
            feed = await world.until_fed()
            async with asyncio.timeout(SECONDS):
                while not noted:
                    await asyncio.sleep(0.002)
            feed.drop()
            await asyncio.sleep(0.02)
            assert len(noted) == 1
            world.holds.set()
            await world.until_got(1, 2, 3)
        assert len(noted) == len(world.got)
        assert {each[0] for each in noted} == {1}

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(40))
def test_everything_comes_whatever_happens(seed: int) -> None:
    """Processes that die, memory that runs short, receivers that are slow, streams that move."""

    async def run() -> None:
        choice = random.Random(seed)
        world = World()
        at = 0
        begins = choice.choice([StoredCursor(), StoredCursor(history={FLOW: 0})])
        world.cursors.add("s", FLOW, cursor=begins)
        partition = 0
        for _life in range(3):
            world.pause = choice.choice([0.0, 0.0005])
            size = choice.choice([500, 2000, 10**6])
            with mock.patch.object(feed_module.Feed.__init__, "__defaults__", (size,)):
                async with world.running(choice.choice([700, 10**9])):
                    for _step in range(choice.randrange(12)):
                        count = choice.randrange(30)
                        world.emit(*range(at + 1, at + count + 1), partition=partition)
                        at += count
                        world.emit(at, stream=OTHER, partition=choice.randrange(PARTITIONS))
                        await asyncio.sleep(choice.choice([0, 0.001, 0.01]))
                        feeds = world.feeds.feeds if world.feeds else {}
                        if "s" in feeds and choice.random() < 0.2:
                            feeds["s"].drop()
                        if world.fanout and choice.random() < 0.4:
                            world.fanout.resting.change(choice.choice([REST, {}]))
            world.feeds = None
            world.emit(*range(at + 1, at + 4), partition=partition)
            at += 3
        async with world.running():
            await world.until_got(*range(1, at + 1))
        assert in_order(world.got)

    asyncio.run(run())


def test_who_reads_very_much_again_holds_up_nobody_who_reads_a_little() -> None:
    """A hundred subscriptions of one tenant begin at the first of many records; another's begins
    near the end, and is live a few pages later."""

    async def run() -> int:
        world = World()
        for at in range(3_000):
            world.topic.append(0, OTHER, at)
        for at in range(5):
            world.topic.append(0, FLOW, at)
        for number in range(100):
            # Each at another place, so that no page is for all of them.
            cursor = StoredCursor({0: number * 20, 1: 0})
            world.cursors.add(f"much-{number}", StreamRef("nothing", "x"), cursor=cursor)
            row = world.cursors.rows[f"much-{number}"]
            world.cursors.rows[f"much-{number}"] = row._replace(tenant=2)
        async with world.running():
            assert world.feeds is not None
            async with asyncio.timeout(SECONDS):
                while world.topic.pages_read < 20:
                    await asyncio.sleep(0)
                world.cursors.add("little", FLOW, cursor=StoredCursor({0: 2_990, 1: 0}))
                while "little" not in world.feeds.feeds:
                    await asyncio.sleep(0)
                before = world.topic.pages_read
                while len(world.got) < 5:
                    await asyncio.sleep(0)
                return world.topic.pages_read - before

    with mock.patch.object(module, "LOOK_SECONDS", 0.001):
        assert asyncio.run(run()) <= 4 * PAGES_A_TURN
