"""Subscriptions whose streams come and go: what comes is given, what is gone is not."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from unittest import mock

import pytest
from memory_feeds import PARTITIONS, MemoryCursors, MemoryHistories, MemoryTopic

from delivery.admission.fair_executor import FairExecutor
from delivery.backlog import Backlog
from delivery.fanout import FanOut
from delivery.feeds import feeds as module
from delivery.feeds import new_streams
from delivery.feeds.event_ids import event_id
from delivery.feeds.feed import Feed
from delivery.feeds.feeds import Feeds, Receiver
from delivery.feeds.pulls import Pulls
from delivery.watchers import Watchers
from servioticy.domain.model import StreamKey, StreamRef
from servioticy.ports.cursors import StoredCursor

SECONDS = 20.0
OLD, ALSO_OLD = StreamRef("old", "a"), StreamRef("also", "a")


class World:
    """A subscription to a group, streams that are made, and a process that comes and goes."""

    def __init__(self) -> None:
        self.topic, self.cursors = MemoryTopic(), MemoryCursors()
        self.history = MemoryHistories(self.topic)
        self.got: defaultdict[StreamRef, list[int]] = defaultdict(list)
        self.members: dict[StreamRef, StreamKey] = {}
        self.made: dict[StreamRef, StreamKey] = {}
        self.receivers = 0
        self.holds = asyncio.Event()
        self.holds.set()
        self.feeds: Feeds
        self.fanout: FanOut | None = None
        self.clock = itertools.count(1)

    def make(self, stream: StreamRef) -> None:
        """Make a stream; its number is larger than those of all before."""
        number = len(self.made) + 1
        self.made[stream] = StreamKey(1, number)
        self.history.streams[number] = stream

    def subscribe(self, *members: StreamRef) -> None:
        for each in members:
            self.make(each)
        begins = StoredCursor(self.topic.ends(), newest=len(self.made))
        self.cursors.add("s", StreamRef("reader", "group"), cursor=begins)
        self.belong(*members)

    def belong(self, *members: StreamRef) -> None:
        """Let these be the members from now on."""
        keys = {each: self.made[each] for each in members}
        self.cursors.bring("s", keys, len(self.made))

    async def receive(self, feed: Feed) -> None:
        self.receivers += 1
        while True:
            delivery = await feed.take()
            await self.holds.wait()
            self.got[delivery.stream].append(delivery.update.timestamp)
            feed.done(delivery)

    @asynccontextmanager
    async def running(self, receiver: Receiver | None = None) -> AsyncIterator[None]:
        watchers: Watchers = Watchers()
        self.fanout = FanOut(watchers.of)
        self.fanout.begin_at(self.topic.ends())
        self.fanout.start()
        shared = self.fanout, watchers, Backlog(10**9), FairExecutor("history", 1)
        receivers = {"test": receiver or self.receive}
        self.feeds = Feeds(self.cursors, self.topic, self.history, *shared, receivers)
        self.feeds.start()
        try:
            yield
        finally:
            self.fanout = None
            # Killed, it stores nothing any more.
            with mock.patch.object(self.cursors, "store"):
                await self.feeds.stop()

    def emit(self, stream: StreamRef, count: int = 1, partition: int = 0) -> list[int]:
        times = [next(self.clock) for _ in range(count)]
        records = [self.topic.append(partition, stream, at) for at in times]
        if self.fanout is not None:
            self.fanout.publish(records)
        return times

    async def until(self, is_so: Callable[[], object]) -> None:
        async with asyncio.timeout(SECONDS):
            while not is_so():
                await asyncio.sleep(0.002)

    async def until_fed(self, *members: StreamRef) -> Feed:
        def is_so() -> bool:
            feed = self.feeds.feeds.get("s")
            return feed is not None and feed.subscription.streams.keys() == set(members)

        await self.until(is_so)
        return self.feeds.feeds["s"]


@pytest.fixture(autouse=True)
def _quick() -> object:
    names = {"STORE_SECONDS": 0.001, "LOOK_SECONDS": 0.001, "PASS_OVER_SECONDS": 0.01}
    with mock.patch.multiple(module, **names):
        yield


def test_a_stream_that_is_made_later_is_given_from_its_beginning() -> None:
    """Though delivery hears of it only when it has sent already; the receiver goes on."""

    async def run() -> None:
        world, new = World(), StreamRef("new", "a")
        world.subscribe(OLD)
        async with world.running():
            await world.until_fed(OLD)
            first = world.emit(OLD, 3)
            await world.until(lambda: world.got[OLD] == first)
            world.make(new)
            sent = world.emit(new, 20, partition=1)
            first += world.emit(OLD)
            world.belong(OLD, new)
            await world.until_fed(OLD, new)
            sent += world.emit(new, 2, partition=1)
            first += world.emit(OLD)
            await world.until(lambda: sent == world.got[new] and first == world.got[OLD])
        assert world.receivers == 1

    asyncio.run(run())


def test_one_that_is_made_and_belongs_only_later_is_given_from_its_beginning() -> None:
    """Though delivery has looked in between, and was killed."""

    async def run() -> None:
        world, new, other = World(), StreamRef("new", "a"), StreamRef("other", "a")
        world.subscribe(OLD)
        world.make(new)
        sent = world.emit(new, 3, partition=1)
        async with world.running():
            await world.until_fed(OLD)
            world.make(other)
            world.belong(OLD, other)
            await world.until_fed(OLD, other)
            world.emit(OLD)
            await world.until(lambda: world.got[OLD])
        async with world.running():
            await world.until_fed(OLD, other)
            world.belong(OLD, other, new)
            await world.until(lambda: world.got[new] == sent)

    asyncio.run(run())


def test_after_a_while_a_stream_is_as_if_it_had_been_there_before() -> None:
    """So what is noted of new ones does not grow for ever."""

    async def run() -> None:
        world, new = World(), StreamRef("new", "a")
        world.subscribe(OLD)
        async with world.running():
            await world.until_fed(OLD)
            world.make(new)
            world.emit(new, 3, partition=1)
            for members in ((OLD, new), (OLD,), (OLD, new), (OLD,)):
                world.belong(*members)
                feed = await world.until_fed(*members)
            assert feed.place.begun == frozenset()
            assert feed.place.newest == 2

    with mock.patch.object(new_streams, "NEW_SECONDS", 0.0):
        asyncio.run(run())


def test_one_that_was_there_before_is_given_from_then_on() -> None:
    """What it sent before it belonged is not asked for."""

    async def run() -> None:
        world = World()
        world.make(ALSO_OLD)
        world.subscribe(OLD)
        async with world.running():
            await world.until_fed(OLD)
            world.emit(ALSO_OLD, 5)
            world.emit(OLD)
            await world.until(lambda: world.got[OLD])
            world.belong(OLD, ALSO_OLD)
            await world.until_fed(OLD, ALSO_OLD)
            later = world.emit(ALSO_OLD, 3)
            await world.until(lambda: world.got[ALSO_OLD] == later)

    asyncio.run(run())


def test_of_a_stream_that_is_gone_nothing_is_given_though_it_waits() -> None:
    async def run() -> None:
        world = World()
        world.subscribe(OLD, ALSO_OLD)
        async with world.running():
            await world.until_fed(OLD, ALSO_OLD)
            world.holds.clear()
            kept = world.emit(OLD)
            world.emit(ALSO_OLD, 10)
            kept += world.emit(OLD)
            await world.until(lambda: world.feeds.feeds["s"].waiting == 11)
            world.belong(OLD)
            await world.until_fed(OLD)
            world.holds.set()
            world.emit(ALSO_OLD, 10)
            kept += world.emit(OLD)
            await world.until(lambda: world.got[OLD] == kept)
        assert not world.got[ALSO_OLD]

    asyncio.run(run())


def test_a_replay_ends_where_its_stream_is_gone() -> None:
    """It may have become private in the middle of its history."""

    async def run() -> None:
        world, new = World(), StreamRef("new", "a")
        world.subscribe(OLD)
        async with world.running():
            await world.until_fed(OLD)
            world.make(new)
            world.emit(new, 500, partition=1)
            world.holds.clear()
            world.belong(OLD, new)
            feed = await world.until_fed(OLD, new)
            await world.until(lambda: feed.waiting)
            world.belong(OLD)
            await world.until_fed(OLD)
            world.holds.set()
            kept = world.emit(OLD)
            await world.until(lambda: world.got[OLD] == kept)
        assert len(world.got[new]) <= 1  # the receiver had it already

    asyncio.run(run())


def test_a_client_loses_nothing_of_a_new_stream_by_acknowledging_what_came_before() -> None:
    """It acknowledges a place in the topic that lies before the history of the new one."""

    async def run() -> None:
        world, new, pulls = World(), StreamRef("new", "a"), Pulls()
        world.subscribe(OLD)
        async with world.running(pulls.receive):
            await world.until_fed(OLD)
            world.emit(OLD, 2)
            pull = await pulls.find("s", 1, world.feeds)
            assert pull is not None
            await pull.take()
            last = event_id(await pull.take(), "")
            world.make(new)
            sent = world.emit(new, 30, partition=1)
            world.belong(OLD, new)
            await world.until_fed(OLD, new)
            await world.until(lambda: world.cursors.rows["s"].cursor.begun)
        async with world.running(pulls.receive):
            pull = await pulls.find("s", 1, world.feeds)
            assert pull is not None
            pull.acknowledge(last)
            got = [(await pull.take()).update.timestamp for _ in range(30)]
        assert got == sent

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(20))
def test_every_update_of_a_member_that_stays_is_given_in_order(seed: int) -> None:
    """Whatever is made, emitted and killed meanwhile."""
    choice = random.Random(seed)

    async def run() -> None:
        world = World()
        world.subscribe(OLD)
        members, sent = [OLD], defaultdict(list)
        for _round in range(4):
            async with world.running():
                for _ in range(choice.randrange(1, 12)):
                    if choice.random() < 0.3:
                        new = StreamRef(f"new{len(world.made)}", "a")
                        world.make(new)
                        members.append(new)
                    stream = choice.choice(members)
                    where = world.made[stream].stream_id % PARTITIONS
                    sent[stream] += world.emit(stream, choice.randrange(1, 9), where)
                    world.belong(*members)
                    await asyncio.sleep(choice.choice((0, 0, 0.002, 0.01)))
            for stream in members:
                where = world.made[stream].stream_id % PARTITIONS
                sent[stream] += world.emit(stream, choice.randrange(3), where)
        async with world.running():
            await world.until(lambda: all(set(sent[s]) <= set(world.got[s]) for s in members))
        for stream in members:
            got = world.got[stream]
            assert list(dict.fromkeys(got)) == sorted(set(got))

    asyncio.run(run())
