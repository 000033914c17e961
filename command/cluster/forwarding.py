"""A balancer of our own, where no HAProxy is installed: which takes the next connection.

It hands bytes on, and knows of HTTP only how to ask a program whether it is well. One that is not,
twice, gets nobody any more, and whoever is connected to it is cut off: so they come to another.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CHECK_SECONDS = 0.5
ANSWER_SECONDS = 1.0
FALL = 2
"""Checks in a row after which a program is not well; one that succeeds makes it well."""
READ_BYTES = 65_536
MOST = 2_000
"""Connections of a service at once; more wait to be accepted."""
CRAMPED_SECONDS = 0.05


class Server:
    """A program behind it, and who is connected to it."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.failed = FALL
        """Checks in a row; nobody is sent to it before the first has succeeded."""
        self._connected: set[asyncio.StreamWriter] = set()

    @property
    def is_well(self) -> bool:
        """Whether somebody may be sent to it."""
        return self.failed < FALL

    async def check(self, path: str) -> None:
        """Ask once whether it is well."""
        is_well = False
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, ValueError):
            async with asyncio.timeout(ANSWER_SECONDS):
                is_well = await self._answers(path)
        if is_well:
            self.failed = 0
        else:
            self.failed += 1
        if not self.is_well:
            for each in list(self._connected):
                each.transport.abort()

    async def _answers(self, path: str) -> bool:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            head = f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode())
            line = await reader.readuntil(b"\r\n")
            return line.split(b" ", 2)[1] == b"200"
        except IndexError:
            return False
        finally:
            writer.transport.abort()

    async def hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Connect to it, and hand on what comes until either side ends it.

        False: it does not answer, and nothing was handed on.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                back, forth = await asyncio.open_connection(self.host, self.port)
        except (OSError, TimeoutError):
            return False
        ends = {writer, forth}
        self._connected |= ends
        try:
            await asyncio.gather(_pour(reader, forth), _pour(back, writer))
        finally:
            self._connected -= ends
            forth.transport.abort()
        return True


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hand on until one side says no more; the other is told so."""
    with contextlib.suppress(OSError):
        while data := await reader.read(READ_BYTES):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
            return
    writer.transport.abort()


class Service:
    """A port of ours, and the programs behind it."""

    def __init__(self, health: str, servers: Sequence[Sequence[Any]]) -> None:
        self._health = health
        self._servers = [Server(str(host), int(port)) for host, port in servers]
        self._next = itertools.cycle(self._servers)
        self._talks: set[asyncio.Task[None]] = set()

    async def check(self) -> None:
        """Look for ever which of them are well."""
        while True:
            await asyncio.gather(*(each.check(self._health) for each in self._servers))
            await asyncio.sleep(CHECK_SECONDS)

    async def accept(self, listener: socket.socket) -> None:
        """Take whoever comes, for ever."""
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        while True:
            while len(self._talks) >= MOST:
                await asyncio.sleep(CRAMPED_SECONDS)
            try:
                client, _ = await loop.sock_accept(listener)
            except OSError:  # it has gone again, or there are no descriptors
                await asyncio.sleep(CRAMPED_SECONDS)
                continue
            talk = asyncio.create_task(self._talk(client))
            self._talks.add(talk)
            talk.add_done_callback(self._talks.discard)

    async def _talk(self, client: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=client)
        try:
            for _ in self._servers:
                server = next(self._next)
                if server.is_well and await server.hand_on(reader, writer):
                    break
        finally:
            writer.close()


async def run(services: Sequence[dict[str, Any]]) -> None:
    """Serve all of them."""
    works = []
    for each in services:
        service = Service(each["health"], each["servers"])
        listeners = [socket.create_server((each["host"], each["port"]), backlog=1024)]
        listeners.append(socket.socket(fileno=each["outside"]))
        works += [service.check(), *map(service.accept, listeners)]
    await asyncio.gather(*works)


if __name__ == "__main__":
    asyncio.run(run(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
