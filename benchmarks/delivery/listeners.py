"""Many WebSockets that note when each frame came, and do nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import re
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import NamedTuple, cast

Note = Callable[[bytes, float], None]
Heard = dict[int, list[float]]
"""By the timestamp of the update, when its frame came: once for each socket."""

AT_ONCE = 100
"""Sockets that are being opened."""
SECONDS = 60.0
CLOSE = 0x88
"""The first byte of the last frame."""
_TIMESTAMP = re.compile(rb'"lastUpdate":([0-9]+)}')


class Wanted(NamedTuple):
    """How many sockets, and to which stream."""

    port: int
    service_object: str
    stream: str
    token: str
    sockets: int


def listen(wanted: Wanted, last: int, told: Connection) -> None:
    """Open the sockets, say `ready`, tell what was heard when all have the last update, and when
    each ended when all have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard), hard))
    asyncio.run(_listen(wanted, last, told))


async def _listen(wanted: Wanted, last: int, told: Connection) -> None:
    heard: Heard = defaultdict(list)
    all_heard, loop = asyncio.Event(), asyncio.get_running_loop()

    def note(data: bytes, at: float) -> None:
        for found in _TIMESTAMP.finditer(data):
            heard[int(found[1])].append(at)
        if len(heard[last]) == wanted.sockets:
            all_heard.set()

    places = asyncio.Semaphore(AT_ONCE)

    async def opened() -> _Socket:
        async with places:
            socket = _Socket(wanted, note)
            await loop.create_connection(lambda: socket, "127.0.0.1", wanted.port)
            await socket.is_open
            return socket

    sockets = await asyncio.gather(*(opened() for _ in range(wanted.sockets)))
    told.send("ready")
    async with asyncio.timeout(SECONDS):
        await all_heard.wait()
    told.send({at: times for at, times in heard.items() if times})
    async with asyncio.timeout(SECONDS):
        told.send(await asyncio.gather(*(each.ended for each in sockets)))


def count(wanted: Sequence[Wanted], frames: int, told: Connection) -> None:
    """Open sockets to these, say `ready`, and say how many frames came as soon as that is so many,
    or after a while in which fewer did.
    """
    asyncio.run(_count(wanted, frames, told))


async def _count(wanted: Sequence[Wanted], frames: int, told: Connection) -> None:
    came, all_came, loop = 0, asyncio.Event(), asyncio.get_running_loop()

    def note(data: bytes, _at: float) -> None:
        nonlocal came
        came += len(_TIMESTAMP.findall(data))
        if came >= frames:
            all_came.set()

    sockets = []
    for each in (one for one in wanted for _ in range(one.sockets)):
        sockets.append(_Socket(each, note))
        await loop.create_connection(partial(_same, sockets[-1]), "127.0.0.1", each.port)
        await sockets[-1].is_open
    told.send("ready")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SECONDS):
            await all_came.wait()
    told.send(came)


def _same(socket: _Socket) -> _Socket:
    return socket


class _Socket(asyncio.Protocol):
    """As much of a WebSocket as is measured: frames of a small document, one after the other."""

    def __init__(self, wanted: Wanted, note: Note) -> None:
        self.is_open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        """When the server said or did that this is the end."""
        self._wanted = wanted
        self._note = note
        self._answer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        path = f"/{self._wanted.service_object}/streams/{self._wanted.stream}/live"
        cast(asyncio.Transport, transport).write(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            f"Authorization: {self._wanted.token}\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        if self.is_open.done():
            now = time.perf_counter()
            if data[0] == CLOSE and not self.ended.done():
                self.ended.set_result(now)
            self._note(data, now)
            return
        self._answer += data
        if b"\r\n\r\n" in self._answer:
            if not self._answer.startswith(b"HTTP/1.1 101"):
                self.is_open.set_exception(RuntimeError(self._answer.decode(errors="replace")))
                return
            self.is_open.set_result(None)
