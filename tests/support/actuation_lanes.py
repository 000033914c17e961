"""Devices with lanes in memory, over sockets and topics, and what they get."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TypeVar
from unittest import mock

import pytest
from support.memory_actuations import MemoryActuations

from delivery.actuations import lane as module
from delivery.actuations.queues import Queues
from delivery.actuations.ways import Report, Taken
from servioticy.domain.model import ServiceObjectKey
from servioticy.errors import Unavailable
from servioticy.ports.actuations import Actuation

LAMP, PUMP = ServiceObjectKey(1, "lamp"), ServiceObjectKey(1, "pump")
T = TypeVar("T")


class Client:
    """A client of a device; with `acknowledges` it says itself what it has taken."""

    def __init__(self, acknowledges: bool = True) -> None:
        self.got: list[str] = []
        self.took: set[str] = set()
        """What it has acknowledged, or was written to it where it acknowledges nothing."""
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
            self.took.add(actuation.id)
            taken(True)

    def acknowledge(self, id_: str) -> None:
        self.took.add(id_)
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
