"""Outputs of composite streams ask for actuations: each once, whatever comes twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import orjson
import pytest
from support.evaluating import an_evaluator
from support.memory_feeds import MemoryCursors, MemoryHistory, MemoryTopic

from delivery.actuations.acting_streams import ActingStreams
from delivery.actuations.condition_checker import Verdict
from delivery.admission.fair_executor import FairExecutor
from delivery.admission.spending import Spending
from delivery.backlog import Backlog
from delivery.fanout import FanOut, Subscriber
from delivery.feeds.deliveries import Delivery
from delivery.feeds.feeds import Feeds
from delivery.watchers import Watchers
from servioticy.domain.model import LastUpdate, ServiceObjectKey, StreamRef
from servioticy.domain.quotas import PROCESSOR_SECONDS, Exceeded, quotas
from servioticy.errors import Unavailable
from servioticy.ports.actuations import ActuationRequest
from servioticy.ports.service_objects import VersionKey
from servioticy.settings import Settings

STREAM = StreamRef("tank", "full")
BACKLOG = Backlog(1 << 20)


class Store:
    """Keeps what is asked for, by its id; and it has documents. May fail as often as told."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[ServiceObjectKey, ActuationRequest]] = {}
        self.calls = 0
        self.fails = 0
        self.documents: dict[int, dict[str, Any]] = {}

    def ask(self, key: ServiceObjectKey, asked: ActuationRequest, now_ms: int) -> bool:
        self.calls += 1
        if self.fails:
            self.fails -= 1
            raise Unavailable("away")
        self.made.setdefault(asked.id, (key, asked))
        return asked.action != "unknown"

    def document(self, key: VersionKey) -> bytes | None:
        found = self.documents.get(key.version)
        return None if found is None else orjson.dumps(found)


class Conditions:
    """Holds for outputs of even timestamps."""

    def look(self, _t: int, _r: StreamRef, _v: int, _c: Any, output: LastUpdate) -> Verdict:
        return Verdict("filtered" if output.timestamp % 2 else "emitted")


class World:
    """One composite stream that asks for actions, and what is emitted of it."""

    def __init__(self, *actions: dict[str, Any]) -> None:
        self.topic, self.cursors, self.store = MemoryTopic(), MemoryCursors(), Store()
        self.store.documents[1] = {
            "streams": {
                "full": {"channels": {"x": {"type": "number", "current-value": "1"}}}
                | {"actions": list(actions)}
            }
        }
        self.spending = Spending()
        self.cursors.add("actions-1", STREAM)
        self.cursors.rows["actions-1"] = self.cursors.rows["actions-1"]._replace(
            callback="actions"
        )
        self.begin()

    def begin(self) -> None:
        self.watchers: Watchers[Subscriber] = Watchers()
        self.fanout = FanOut(self.watchers.of)
        ask = FairExecutor("store", 1).run
        store: Any = self.store
        conditions: Any = Conditions()
        parts: Any = (store, store, conditions, self.spending, an_evaluator(), ask, ask)
        self.acting = ActingStreams(*parts, lambda: 1.0)
        self.feeds = Feeds(
            self.cursors,
            self.topic,
            MemoryHistory(self.topic, STREAM),
            self.fanout,
            self.watchers,
            BACKLOG,
            FairExecutor("history", 1),
            {"actions": self.acting.receive},
        )
        self.fanout.start()
        self.fanout.begin_at(self.topic.ends())
        self.feeds.start()

    async def emit(self, *times: int) -> None:
        records = [self.topic.append(0, STREAM, at) for at in times]
        await asyncio.to_thread(self.fanout.publish, records)

    async def until(self, is_so: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not is_so():
                await asyncio.sleep(0.005)

    def parameters(self) -> list[str]:
        return [asked.parameters for _, asked in self.store.made.values()]


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delivery.feeds.feeds.LOOK_SECONDS", 0.01)
    monkeypatch.setattr("delivery.repeating.RETRY_SECONDS", 0.01)


AT = "{$.lastUpdate}"


def test_each_output_asks_for_what_its_document_says() -> None:
    async def run() -> None:
        world = World(
            {"action": "open", "parameters": {"at": AT, "text": f"at {AT}", "n": [1, None]}},
            {"action": "close", "serviceObject": "door", "if": "true"},
        )
        await world.emit(1, 2)
        await world.until(lambda: len(world.store.made) == 3)
        await world.feeds.stop()

        made = list(world.store.made.values())
        assert [(key, asked.action) for key, asked in made] == [
            (ServiceObjectKey(1, "tank"), "open"),
            (ServiceObjectKey(1, "tank"), "open"),
            (ServiceObjectKey(1, "door"), "close"),
        ]
        assert made[0][1].parameters == '{"at":1,"text":"at 1","n":[1,null]}'

    asyncio.run(run())


def test_an_output_that_comes_twice_asks_once() -> None:
    """As it does after a crash, before the cursor was stored."""

    async def run() -> None:
        world = World({"action": "open"})
        await world.emit(1, 2)
        await world.until(lambda: world.store.calls == 2)
        await world.feeds.stop()
        world.cursors.rows["actions-1"] = world.cursors.rows["actions-1"]._replace(
            cursor=world.cursors.rows["actions-1"].cursor._replace(offsets={0: 0, 1: 0})
        )
        world.begin()
        await world.until(lambda: world.store.calls == 4)
        await world.feeds.stop()

        assert len(world.store.made) == 2

    asyncio.run(run())


def test_what_cannot_be_stored_now_is_stored_later_and_in_order() -> None:
    async def run() -> None:
        world = World({"action": "open", "parameters": AT})
        world.store.fails = 3
        await world.emit(1, 2, 3)
        await world.until(lambda: len(world.store.made) == 3)
        await world.feeds.stop()

        assert world.parameters() == ["1", "2", "3"]

    asyncio.run(run())


def test_the_version_that_made_an_output_says_what_it_asks_for() -> None:
    """Another one, and one that is forgotten, ask for nothing."""

    async def run() -> None:
        world = World({"action": "open"})
        world.store.documents[2] = world.store.documents.pop(1)
        await world.emit(1)
        await world.until(lambda: world.cursors.rows["actions-1"].cursor.offsets.get(0) == 1)
        await world.feeds.stop()

        assert not world.store.made

    asyncio.run(run())


def test_an_output_that_nobody_can_read_is_told() -> None:
    """What is emitted may hold half a surrogate pair."""

    async def run() -> None:
        world = World({"action": "open", "parameters": AT})
        record = world.topic.append(0, STREAM, 1).record
        broken = msgspec.structs.replace(
            record, update=msgspec.Raw(b'{"lastUpdate":1,"x":"\\ud800"}')
        )
        world.topic.records[0][0] = world.topic.records[0][0]._replace(record=broken)
        await asyncio.to_thread(world.fanout.publish, world.topic.records[0])
        await world.emit(2)
        await world.until(lambda: len(world.store.made) == 2)
        await world.feeds.stop()

        (_, first), (_, second) = world.store.made.values()
        assert first.refusal is not None
        assert (second.refusal, second.parameters) == (None, "2")

    asyncio.run(run())


def test_parameters_that_become_too_long_are_told() -> None:
    """Nothing that an output asks for goes without a trace."""

    async def run() -> None:
        world = World({"action": "open", "parameters": AT * 1000})
        await world.emit(10**18)
        await world.until(lambda: world.store.made)
        await world.feeds.stop()

        ((_, asked),) = world.store.made.values()
        assert asked.refusal is not None and "bytes of parameters" in asked.refusal

    asyncio.run(run())


def test_without_processor_time_a_condition_is_not_looked_at_and_the_actuation_says_why() -> None:
    """What has no condition takes none, and is asked for as ever."""
    over = Exceeded(quotas(Settings())[PROCESSOR_SECONDS]._replace(most=5), 60)

    async def run() -> None:
        world = World({"action": "open", "if": "true"}, {"action": "close"})
        world.spending.change({1: over})
        await world.emit(2)
        await world.until(lambda: len(world.store.made) == 2)
        world.spending.change({2: over})
        await world.emit(4)
        await world.until(lambda: len(world.store.made) == 4)
        await world.feeds.stop()

        first, close, later, _ = [asked for _, asked in world.store.made.values()]
        assert first.refusal == over.message and "processor time" in over.message
        assert (close.action, close.refusal) == ("close", None)
        assert (later.action, later.refusal) == ("open", None)

    asyncio.run(run())


class SlowConditions:
    """Those of the tenant 1 take until a test lets each end."""

    def __init__(self) -> None:
        self.may_end = threading.Semaphore(0)
        self.asked: list[int] = []

    def look(self, tenant: int, _r: StreamRef, _v: int, _c: Any, _o: LastUpdate) -> Verdict:
        self.asked.append(tenant)
        if tenant == 1:
            assert self.may_end.acquire(timeout=20)
        return Verdict("emitted")


class LoneFeed:
    """Of one stream of a tenant: one output that asks."""

    def __init__(self, tenant: int, name: str) -> None:
        self.tenant = tenant
        update = LastUpdate(1, b'{"lastUpdate":1}')
        self._given = [Delivery(StreamRef(name, "full"), update, None, 1)]
        self.is_done = False

    async def take_patiently(self) -> Delivery:
        if not self._given:
            await asyncio.Event().wait()
        return self._given.pop()

    def done(self, _delivery: Delivery) -> None:
        self.is_done = True


def test_one_tenants_slow_conditions_hold_another_up_for_one_of_them() -> None:
    """However many of its streams ask at once: conditions are looked at by tenants in turn."""

    async def run() -> None:
        slow, store = SlowConditions(), Store()
        store.documents[1] = {
            "streams": {
                "full": {
                    "channels": {"x": {"type": "number", "current-value": "1"}},
                    "actions": [{"action": "open", "if": "true"}],
                }
            }
        }
        ask, turns = FairExecutor("store", 1).run, FairExecutor("conditions", 1)
        parts: Any = (store, store, slow, Spending(), an_evaluator(), ask, turns.run)
        acting = ActingStreams(*parts, lambda: 1.0)
        many: list[Any] = [LoneFeed(1, f"tank{n}") for n in range(9)]
        other: Any = LoneFeed(2, "other")
        tasks = [asyncio.create_task(acting.receive(each)) for each in many]
        async with asyncio.timeout(20):
            while turns.waiting < len(many) - 1:
                await asyncio.sleep(0.005)
            tasks.append(asyncio.create_task(acting.receive(other)))
            while turns.waiting < len(many):
                await asyncio.sleep(0.005)
            # The one under way ends, and one that has come before.
            slow.may_end.release(2)
            while not other.is_done:
                await asyncio.sleep(0.005)
        slow.may_end.release(len(many))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        assert slow.asked[:3] == [1, 1, 2]

    asyncio.run(run())
