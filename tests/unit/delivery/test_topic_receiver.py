"""Subscriptions to topics reach clients, and nothing is lost between one client and the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import orjson
from support.memory_feeds import USED_UP, MemoryCursors, MemoryHistory, MemoryTopic

from broker.client import Client, Subscription, Taken
from broker.exchange import Exchange
from broker.receiver import WINDOW, TopicReceiver
from broker.topics import EVERYTHING, Filter, read_filter
from delivery.admission.fair_executor import FairExecutor
from delivery.admission.requests import Identity
from delivery.backlog import Backlog
from delivery.fanout import FanOut, Subscriber
from delivery.feeds.feeds import Feeds
from delivery.watchers import Watchers
from servioticy.domain.access import Scope
from servioticy.domain.model import StreamRef
from servioticy.domain.tokens import digest

STREAM = StreamRef("pump", "flow")
TOKEN = "the token of tenant 1"
BACKLOG = Backlog(1 << 20)


class World:
    """One `pubsub` subscription whose destination is the token, and clients for it."""

    def __init__(self) -> None:
        self.topic, self.cursors, self.exchange = MemoryTopic(), MemoryCursors(), Exchange()
        self.watchers: Watchers[Subscriber] = Watchers()
        self.fanout = FanOut(self.watchers.of)
        self.cursors.add("s", STREAM)
        document = orjson.dumps({"destination": digest(TOKEN).hex()})
        self.cursors.rows["s"] = self.cursors.rows["s"]._replace(
            callback="pubsub", document=document
        )
        receiver = TopicReceiver(self.exchange)
        self.feeds = Feeds(
            self.cursors,
            self.topic,
            MemoryHistory(self.topic, STREAM),
            self.fanout,
            self.watchers,
            BACKLOG,
            FairExecutor("history", 1),
            {"pubsub": receiver.receive},
        )

    def emit(self, *times: int) -> None:
        self.fanout.publish([self.topic.append(0, STREAM, at) for at in times])

    async def until(self, is_so: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not is_so():
                await asyncio.sleep(0.005)

    @property
    def acknowledged(self) -> int:
        return self.cursors.rows["s"].cursor.offsets.get(0, 0)


class Device:
    """A client that acknowledges when it is told to; keeps to the protocol `Outlet`."""

    def __init__(
        self,
        world: World,
        qos: int = 1,
        *,
        tenant: int = 1,
        bound: str = "",
        wanted: Filter | None = None,
    ) -> None:
        self.got: list[tuple[str, int]] = []
        self.owed: list[Taken] = []
        self.client = Client(self, BACKLOG)
        self.client.identity = Identity(tenant, Scope(bound or None), TOKEN, digest(TOKEN))
        topics = wanted or read_filter(f"{TOKEN}/+/streams/#")
        self.subscription = self.client.subscribe("a", topics, qos)
        self.exchange = world.exchange
        world.exchange.add(self.subscription)

    def send(
        self, subscription: Subscription, topic: str, payload: bytes, taken: Taken, *, old: bool
    ) -> None:
        self.got.append((topic, orjson.loads(payload)["lastUpdate"]))
        self.owed.append(taken)

    @property
    def times(self) -> list[int]:
        return [at for _, at in self.got]

    def acknowledge(self, count: int) -> None:
        for _ in range(count):
            self.owed.pop(0)(True)

    def go(self) -> None:
        self.client.end()
        self.exchange.remove(self.subscription)
        while self.owed:
            self.owed.pop(0)(False)

    def unsent_bytes(self) -> int:
        return 0

    def close(self, why: str) -> None:
        self.go()

    def abort(self) -> None:
        self.go()


def run(story: Callable[[World], Awaitable[None]]) -> None:
    async def told() -> None:
        world = World()
        world.fanout.start()
        world.fanout.begin_at({0: 0, 1: 0})
        world.feeds.start()
        try:
            await world.until(lambda: world.feeds.feeds)
            await story(world)
        finally:
            await world.feeds.stop()

    asyncio.run(told())


def test_what_is_emitted_while_nobody_is_there_waits() -> None:
    async def story(world: World) -> None:
        world.emit(1, 2)
        await asyncio.sleep(0.05)
        device = Device(world)
        await world.until(lambda: device.times == [1, 2])
        assert world.acknowledged == 0

        device.acknowledge(2)
        await world.until(lambda: world.acknowledged == 2)
        assert device.got[0][0] == f"{TOKEN}/pump/streams/flow/updates"

    run(story)


def test_what_a_client_has_not_acknowledged_comes_again_in_its_order() -> None:
    async def story(world: World) -> None:
        first = Device(world)
        world.emit(*range(10))
        await world.until(lambda: len(first.got) == 10)
        first.acknowledge(3)
        first.go()
        world.emit(10)
        second = Device(world)
        await world.until(lambda: len(second.got) == 8)

        assert second.times == list(range(3, 11))

    run(story)


def test_what_comes_again_waits_too_while_its_tenant_may_have_nothing() -> None:
    """Else a client that comes and goes would get the same again and again."""

    async def story(world: World) -> None:
        first = Device(world)
        world.emit(1, 2)
        await world.until(lambda: len(first.got) == 2)
        world.fanout.resting.change({1: USED_UP})
        first.go()
        second = Device(world)
        world.emit(3)
        await asyncio.sleep(0.05)
        assert second.times == []

        world.fanout.resting.change({})
        await world.until(lambda: second.times == [1, 2, 3])

    run(story)


def test_so_many_are_on_their_way_at_once() -> None:
    async def story(world: World) -> None:
        device = Device(world)
        world.emit(*range(WINDOW + 5))
        await world.until(lambda: len(device.got) == WINDOW)
        await asyncio.sleep(0.05)
        assert len(device.got) == WINDOW

        device.acknowledge(1)
        await world.until(lambda: len(device.got) == WINDOW + 1)

    run(story)


def test_it_counts_where_one_of_several_has_got_it() -> None:
    async def story(world: World) -> None:
        stays, goes = Device(world), Device(world)
        world.emit(1)
        await world.until(lambda: stays.got and goes.got)
        goes.go()
        assert world.acknowledged == 0

        stays.acknowledge(1)
        await world.until(lambda: world.acknowledged == 1)
        assert stays.times == [1]

    run(story)


def test_neither_another_tenant_nor_another_object_gets_it() -> None:
    """The topic is the same: whose connection it is decides."""

    async def story(world: World) -> None:
        others = [Device(world, tenant=2), Device(world, bound="valve")]
        own = Device(world, bound="pump")
        world.emit(1)
        await world.until(lambda: own.got)

        assert [each.got for each in others] == [[], []]

    run(story)


def test_a_bridge_is_one_client_for_all_topics_of_its_tenant() -> None:
    """What waits goes to it when it comes, and counts when it has acknowledged it."""

    async def story(world: World) -> None:
        world.emit(1, 2)
        other = Device(world, tenant=2, wanted=EVERYTHING)
        first = Device(world, wanted=EVERYTHING)
        await world.until(lambda: first.times == [1, 2])
        first.acknowledge(1)
        first.go()
        second = Device(world, wanted=EVERYTHING)
        await world.until(lambda: second.times == [2])
        await world.until(lambda: world.acknowledged == 1)

        second.acknowledge(1)
        await world.until(lambda: world.acknowledged == 2)
        assert second.got[0][0] == f"{digest(TOKEN).hex()}/pump/streams/flow/updates"
        assert other.got == []

    run(story)


def test_the_last_one_that_came_again_is_noted_as_any_other() -> None:
    """Nothing has to follow it."""

    async def story(world: World) -> None:
        first = Device(world)
        world.emit(1)
        await world.until(lambda: first.got)
        first.go()
        second = Device(world)
        await world.until(lambda: second.got)
        second.acknowledge(1)
        await world.until(lambda: world.acknowledged == 1)

    run(story)
