"""Actuations reach whoever is connected for a device: all, in order, whatever happens."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from unittest import mock

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from support.memory_actuations import MemoryActuations

from delivery.actuations import lane as module
from delivery.actuations.queues import Queues
from delivery.actuations.together import WINDOW
from delivery.actuations.ways import Report, Taken
from servioticy.domain.actuations import State
from servioticy.domain.model import ServiceObjectKey
from servioticy.errors import Unavailable
from servioticy.ports.actuations import Actuation

LAMP, PUMP = ServiceObjectKey(1, "lamp"), ServiceObjectKey(1, "pump")
T = TypeVar("T")


class Client:
    """A client of a device; with `acknowledges` it says itself what it has taken."""

    def __init__(self, acknowledges: bool = True) -> None:
        self.got: list[str] = []
        self.room = True
        self.unacknowledged: dict[str, list[Taken]] = {}
        self._acknowledges = acknowledges

    def is_there(self) -> bool:
        return True

    def has_room(self) -> bool:
        return self.room

    def give(self, actuation: Actuation, taken: Taken) -> None:
        self.got.append(actuation.id)
        if self._acknowledges:
            self.unacknowledged.setdefault(actuation.id, []).append(taken)
        else:
            taken(True)

    def acknowledge(self, id_: str) -> None:
        for taken in self.unacknowledged.pop(id_, ()):
            taken(True)

    def gone(self) -> None:
        left, self.unacknowledged = self.unacknowledged, {}
        for told in left.values():
            for taken in told:
                taken(False)


class Topic:
    """All clients of a broker that subscribe to a device's topic: nobody is told who leaves."""

    def __init__(self) -> None:
        self.clients: list[Client] = []

    def is_there(self) -> bool:
        return bool(self.clients)

    def has_room(self) -> bool:
        return all(each.has_room() for each in self.clients)

    def give(self, actuation: Actuation, taken: Taken) -> None:
        report = Report(len(self.clients), taken)
        for each in list(self.clients):
            each.give(actuation, report.taken)


class World:
    """A store and a delivery program that can be killed."""

    def __init__(self) -> None:
        self.store, self.now_ms, self.made = MemoryActuations(), 1_000, 0
        self.clients: dict[Client, ServiceObjectKey] = {}
        self.restart()

    def restart(self) -> None:
        self.topics = {LAMP: Topic(), PUMP: Topic()}
        self.queues = Queues(
            self.store,
            self.topics.__getitem__,
            self.ask,
            clock=lambda: (self.now_ms + 0.5) / 1000,
        )

    async def kill(self) -> None:
        """Nothing of what it knew is left; its clients are cut off."""
        await self.queues.stop()
        self.clients.clear()
        self.restart()

    async def ask(self, _tenant: int, call: Callable[[], T]) -> T:
        await asyncio.sleep(0)
        return call()

    def submit(self, key: ServiceObjectKey = LAMP, timeout_ms: int = 1_000_000) -> str:
        self.made += 1
        id_ = f"{self.made:06d}"
        self.store.submit(key, id_, self.now_ms, timeout_ms)
        return id_

    def join(self, client: Client, key: ServiceObjectKey = LAMP) -> Client:
        self.clients[client] = key
        self.queues.join(key, client)
        return client

    def subscribe(self, client: Client, key: ServiceObjectKey = LAMP) -> Client:
        """Let it come by the topic."""
        self.clients[client] = key
        self.topics[key].clients.append(client)
        self.queues.came(key)
        return client

    def leave(self, client: Client) -> None:
        """Its connection is lost."""
        key = self.clients.pop(client)
        if client in self.topics[key].clients:
            self.topics[key].clients.remove(client)
            client.gone()
        else:
            client.gone()
            self.queues.leave(key, client)

    async def settle(self) -> None:
        """Let everything happen that can."""
        for _ in range(3):
            try:
                await self.queues.look()
            except Unavailable:
                continue
            for _ in range(60):
                await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def quickly() -> Iterator[None]:
    with mock.patch.multiple(module, RECHECK_SECONDS=0.0, FULL_SECONDS=0.0, RETRY_SECONDS=0.0):
        yield


def test_a_device_that_comes_gets_what_waits_in_order() -> None:
    async def run() -> None:
        world = World()
        made = [world.submit() for _ in range(3)]
        world.submit(PUMP)

        client = world.join(Client())
        await world.settle()

        assert client.got == made
        assert world.store.state(made[0], world.now_ms) is State.SENT
        assert set(world.queues.lanes) == {LAMP}, "the other device is away, and costs nothing"

    asyncio.run(run())


def test_what_is_acknowledged_is_delivered_and_makes_room() -> None:
    async def run() -> None:
        world = World()
        client = world.join(Client())
        made = [world.submit() for _ in range(WINDOW + 2)]
        await world.settle()
        assert client.got == made[:WINDOW]

        for each in made[:2]:
            client.acknowledge(each)
        await world.settle()

        assert client.got == made
        assert world.store.kept[made[0]].state is State.DELIVERED
        assert list(world.store.kept[made[0]].times) == ["queued", "sent", "delivered"]

    asyncio.run(run())


def test_who_acknowledges_nothing_has_taken_what_is_written() -> None:
    async def run() -> None:
        world = World()
        client = world.join(Client(acknowledges=False))
        made = [world.submit() for _ in range(3 * WINDOW)]
        await world.settle()
        await world.settle()

        assert client.got == made
        assert {each.state for each in world.store.kept.values()} == {State.DELIVERED}
        assert not world.queues.lanes

    asyncio.run(run())


@pytest.mark.parametrize("over_topic", [False, True])
def test_who_comes_later_gets_first_what_is_on_its_way(over_topic: bool) -> None:
    """Else it would get what was on its way to one that is gone after what follows that."""

    async def run() -> None:
        world = World()
        come = world.subscribe if over_topic else world.join
        first, made = come(Client()), [world.submit(), world.submit()]
        await world.settle()
        later = come(Client())
        await world.settle()
        made.append(world.submit())
        await world.settle()
        world.leave(first)
        await world.settle()

        assert list(dict.fromkeys(later.got)) == made

    asyncio.run(run())


def test_a_client_without_room_gets_nothing_and_delays_nobody() -> None:
    async def run() -> None:
        world = World()
        full, other = world.join(Client()), world.join(Client(), PUMP)
        full.room = False
        made, others = world.submit(), world.submit(PUMP)
        await world.settle()
        assert (full.got, other.got) == ([], [others])

        full.room = True
        await world.settle()

        assert full.got == [made]

    asyncio.run(run())


def test_what_is_over_or_reported_meanwhile_is_not_sent() -> None:
    async def run() -> None:
        world = World()
        over, reported, good = world.submit(timeout_ms=5), world.submit(), world.submit()
        world.store.report(reported, "done", world.now_ms)
        world.now_ms += 5

        client = world.join(Client())
        await world.settle()

        assert client.got == [good]
        assert world.store.state(over, world.now_ms) is State.EXPIRED
        assert world.store.state(reported, world.now_ms) is State.DONE

    asyncio.run(run())


def test_what_is_acknowledged_after_its_lane_has_ended_is_noted() -> None:
    """A client that has unsubscribed may still acknowledge."""

    async def run() -> None:
        world = World()
        client, made = world.join(Client()), world.submit()
        await world.settle()
        world.queues.leave(LAMP, client)
        await world.settle()
        assert not world.queues.lanes

        client.acknowledge(made)
        await world.settle()

        assert world.store.kept[made].state is State.DELIVERED

    asyncio.run(run())


@pytest.mark.parametrize(
    ("told", "heard"),
    [([True], [True]), ([False], [False]), ([False, True], [True]), ([True, False], [True])],
)
def test_one_of_several_ways_is_enough(told: list[bool], heard: list[bool]) -> None:
    said: list[bool] = []
    report = Report(len(told), said.append)
    for each in told:
        report.taken(each)

    assert said == heard


OFTEN = ["submit", "join", "subscribe", "leave", "acknowledge"]
SELDOM = ["report", "pass", "kill", "away", "full"]


def operations(chance: random.Random) -> list[tuple[Any, ...]]:
    """What happens; clients mostly acknowledge, have room, and come for one device."""
    return [an_operation(chance) for _ in range(chance.randint(10, 50))]


def an_operation(chance: random.Random) -> tuple[Any, ...]:
    name, key = chance.choice(OFTEN * 4 + SELDOM), chance.choice([LAMP, LAMP, LAMP, PUMP])
    mostly, number = chance.random() < 0.7, chance.randrange(20)
    more: dict[str, tuple[Any, ...]] = {
        "submit": (key, 10**6 if mostly else 3),
        "join": (key, mostly),
        "subscribe": (key, mostly),
        "leave": (number,),
        "acknowledge": (number, chance.randrange(20)),
        "report": (number, chance.choice(["done", "failed", "x"])),
        "pass": (chance.randint(1, 4),),
        "away": (not mostly,),
        "full": (number, mostly),
    }
    return (name, *more.get(name, ()))


RANK = [State.QUEUED, State.SENT, State.DELIVERED]


class Law:
    """Does what it is told, and looks that nothing is against the law."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ended: dict[str, State] = {}
        self.everybody: list[Client] = []

    async def do(self, name: str, *more: Any) -> None:
        clients, made = list(self.world.clients), sorted(self.world.store.kept)
        if name == "submit":
            self.world.submit(*more)
        elif name == "join":
            self.everybody.append(self.world.join(Client(more[1]), more[0]))
        elif name == "subscribe":
            self.everybody.append(self.world.subscribe(Client(more[1]), more[0]))
        elif name == "pass":
            self.world.now_ms += more[0]
        elif name == "kill":
            await self.world.kill()
        elif name == "away":
            self.world.store.is_away = more[0]
        elif name == "report" and made:
            self.world.store.report(made[more[0] % len(made)], more[1], self.world.now_ms)
        elif name == "leave" and clients:
            self.world.leave(clients[more[0] % len(clients)])
        elif name == "full" and clients:
            clients[more[0] % len(clients)].room = more[1]
        elif name == "acknowledge" and clients:
            client = clients[more[0] % len(clients)]
            waiting = list(client.unacknowledged)
            if waiting:
                client.acknowledge(waiting[more[1] % len(waiting)])
        self.look()

    def look(self) -> None:
        for id_ in self.world.store.kept:
            state = self.world.store.state(id_, self.world.now_ms)
            assert self.ended.get(id_, state) is state, "what has ended stays as it is"
            if state not in RANK:
                self.ended[id_] = state
        for client in self.everybody:
            firsts = list(dict.fromkeys(client.got))
            assert firsts == sorted(firsts), "in order, but for what comes again"

    async def end(self) -> None:
        """When all is well again, whoever comes gets all that there is to get."""
        self.world.store.is_away = False
        for client in list(self.world.clients):
            self.world.leave(client)
        await self.world.settle()
        store, now_ms = self.world.store, self.world.now_ms
        waiting = store.waiting(LAMP.tenant, [LAMP.id, PUMP.id], 1_000, now_ms)
        wanted = {key: [each.id for each in waiting.get(key.id, ())] for key in (LAMP, PUMP)}
        last = {key: self.world.join(Client(acknowledges=False), key) for key in (LAMP, PUMP)}
        for _ in range(2 + self.world.made // WINDOW):
            await self.world.settle()
        for key, client in last.items():
            assert client.got == wanted[key]
            assert all(
                self.world.store.kept[each].state is State.DELIVERED for each in wanted[key]
            )


@settings(max_examples=examples(300), deadline=None)
@given(st.integers(0, 2**32))
def test_nothing_is_lost_or_out_of_order_whatever_happens(seed: int) -> None:
    """By chance, and not as hypothesis would choose: it takes several that fit together."""
    chance = random.Random(seed)

    async def run() -> None:
        law = Law(World())
        for each in operations(chance):
            await law.do(*each)
            if chance.random() < 0.75:
                await law.world.settle()
                law.look()
        await law.end()
        await law.world.queues.stop()

    asyncio.run(run())
