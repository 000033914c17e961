"""Packets as the broker sends them: of one that is too large, no more than who it is is kept."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from broker.errors import Malformed
from broker.mqtt_packets import Kind
from broker.wire import READ_BYTES, Wire

HEAD_BYTES = 65_535 + 4
"""A topic with its length, and the number of the message: the beginning of a PUBLISH."""
PACKET_SECONDS = 60.0


class Packet(NamedTuple):
    """One packet."""

    kind: int
    flags: int
    content: bytes
    size: int
    """Of the whole content: where it is larger than what is here, the rest is gone."""

    @property
    def is_whole(self) -> bool:
        """Whether all of it is here."""
        return len(self.content) == self.size


async def read_packet(wire: Wire, most: int, seconds: float) -> Packet:
    """Return the next packet, which has to begin within so many seconds.

    Raises Malformed, TimeoutError, IncompleteReadError.
    """
    async with asyncio.timeout(seconds):
        first = (await wire.readexactly(1))[0]
    async with asyncio.timeout(PACKET_SECONDS):
        size = await _length(wire)
        kind, flags = first >> 4, first & 15
        if size <= most:
            return Packet(kind, flags, await wire.readexactly(size), size)
        if kind != Kind.PUBLISH:
            raise Malformed(f"a packet that is no message has {size} bytes")
        head = await wire.readexactly(min(size, HEAD_BYTES))
        await _pass_over(wire, size - len(head))
        return Packet(kind, flags, head, size)


async def _length(wire: Wire) -> int:
    size = 0
    for shift in range(0, 28, 7):
        byte = (await wire.readexactly(1))[0]
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size
    raise Malformed("a length has more than four bytes")


async def _pass_over(wire: Wire, size: int) -> None:
    while size:
        size -= len(await wire.readexactly(min(size, READ_BYTES)))
