"""Updates into memory: a transport for tests, and the measure of how much one has to be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from delivery.admission.refusals import Refusal
from delivery.endings import Ending
from delivery.hub import Hub
from delivery.transport import Disconnected
from servioticy.domain.model import LastUpdate


class MemoryClient:
    """A client, and its connection too: what was sent waits here until the client takes it."""

    address = "memory"

    def __init__(self) -> None:
        self.unsent: list[bytes] = []
        self.received: asyncio.Queue[bytes] = asyncio.Queue()
        self.reads = True
        self.ending: Ending | None = None
        self.is_cut_off = False
        self._closed = asyncio.Event()
        self._when_lost: list[Callable[[], None]] = []

    def write(self, update: LastUpdate) -> None:
        if self._closed.is_set():
            return
        self.unsent.append(update.document)
        self.read_on()

    async def send(self, update: LastUpdate) -> None:
        self.write(update)
        while self.unsent and not self._closed.is_set():
            await asyncio.sleep(0)
        if self._closed.is_set():
            raise Disconnected

    def unsent_bytes(self) -> int:
        return sum(map(len, self.unsent))

    async def close(self, ending: Ending) -> None:
        self.ending = self.ending or ending
        self.disconnect()

    def abort(self) -> None:
        self.is_cut_off = True
        self.disconnect()

    async def wait_closed(self) -> None:
        await self._closed.wait()

    def when_lost(self, callback: Callable[[], None]) -> None:
        self._when_lost.append(callback)

    def read_on(self) -> None:
        """Take what has come, if the client reads."""
        while self.reads and self.unsent:
            self.received.put_nowait(self.unsent.pop(0))

    def disconnect(self) -> None:
        """End the connection, as the client may at any time."""
        self._closed.set()
        while self._when_lost:
            self._when_lost.pop()()


class MemoryTransport:
    """Takes clients in by a call. `connect` does what another transport does for a request."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._clients: dict[MemoryClient, asyncio.Task[None]] = {}

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        for client in self._clients:
            await client.close(Ending.STOPPING)
        await asyncio.gather(*self._clients.values())

    async def connect(self, target: str, token: str) -> MemoryClient | Refusal:
        client, reception = MemoryClient(), self._hub.reception
        reception.pending.connected(client)
        client.when_lost(lambda: reception.pending.disconnected(client))
        reception.pending.remove(client)
        answer = await reception.decide(client, target, token)
        if isinstance(answer, Refusal):
            client.disconnect()
            return answer
        self._clients[client] = asyncio.create_task(self._hub.serve(answer, client))
        await asyncio.sleep(0)  # the client watches when this returns
        return client
