"""Actuations over a socket: what a device gets, and what it says of it.

A socket acknowledges nothing by itself. So an actuation counts as delivered when the device has
said something of it, whatever that is; what it has said nothing of comes again to who comes next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import quote

import orjson

from delivery.actuations.queues import Queues
from delivery.actuations.together import WINDOW
from delivery.actuations.ways import Taken, message
from delivery.admission.refusals import Refusal, Refused
from delivery.rest_api import Api
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.actuations import Actuation

TEXT = "text/plain;charset=UTF-8"


class Devices(NamedTuple):
    """What sockets of devices stand on."""

    queues: Queues
    api: Api
    """Takes what devices say, as it takes a PUT."""


class Device:
    """A subscription of a socket to the actuations of one Service Object; a `Way`."""

    def __init__(self, id_: str, key: ServiceObjectKey) -> None:
        self.id = id_
        self.key = key
        self._unsent: deque[Actuation] = deque()
        self._unreported: dict[str, Taken] = {}
        self._something = asyncio.Event()
        self._is_there = True

    def is_there(self) -> bool:
        """Tell whether the socket is still subscribed."""
        return self._is_there

    def has_room(self) -> bool:
        """Tell whether it can take one more."""
        return len(self._unsent) < WINDOW

    def give(self, actuation: Actuation, taken: Taken) -> None:
        """Let the socket send it."""
        self._unsent.append(actuation)
        self._unreported[actuation.id] = taken
        self._something.set()

    async def run(self, queues: Queues, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send what comes until cancelled."""
        queues.join(self.key, self)
        name = orjson.dumps(self.id)
        try:
            while True:
                while not self._unsent:
                    self._something.clear()
                    await self._something.wait()
                frame = message(self._unsent.popleft())
                await send(b'{"id":%s,"actuation":%s}' % (name, frame))
        finally:
            self._is_there = False
            queues.leave(self.key, self)

    async def report(self, devices: Devices, token: str, actuation: str, status: str) -> None:
        """Keep what the device says of an actuation. Raises Refused, Unavailable.

        The socket has given it one: so it has that, whatever its token.
        """
        queues, api = devices
        taken = self._unreported.pop(actuation, None)
        if taken is not None:
            # Before what it says of it: of an actuation that nobody has got others cannot say
            # that it is done, and its token may be its tenant's.
            await queues.delivered(self.key, actuation)
            taken(True)
        path = f"/{quote(self.key.id, safe='')}/actuations/{quote(actuation, safe='')}"
        answer = await api.ask("PUT", path, token, status.encode(errors="replace"), TEXT)
        if not 200 <= answer.status < 300:
            raise Refused(Refusal(answer.status or 503, answer.message))
