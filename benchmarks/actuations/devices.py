"""Many devices that note when each actuation came, and say that they have it."""

from __future__ import annotations

import asyncio
import re
import resource
import struct
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple, cast

from servioticy.domain.model import ServiceObjectKey

AT_ONCE = 100
SECONDS = 120.0
RETRY_SECONDS = 1.0
TEXT, PING, PONG = 0x81, 0x89, 0x8A
_ID = re.compile(rb'\{"id":"([0-9a-f]{32})"')
_SAID = re.compile(
    _ID.pattern.replace(b"(", b"(?P<new>", 1)
    + rb'|"is":"reported","actuation":"(?P<reported>[0-9a-f]{32})"|"is":"(?P<refused>refused)"'
)
_REPORT = b'{"do":"report","id":"actuations","actuation":"%b","status":"done"}'

Heard = dict[str, float]


class Device(NamedTuple):
    """One of them."""

    key: ServiceObjectKey
    token: str
    speaks_mqtt: bool
    """Else it has a socket."""


def be_devices(
    devices: Sequence[Device], mqtt_port: int, live_port: int, told: Connection
) -> None:
    """Connect all, say `ready`; then, asked for a number, tell when so many came."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard), hard))
    asyncio.run(_be_devices(devices, mqtt_port, live_port, told))


async def _be_devices(
    devices: Sequence[Device], mqtt_port: int, live_port: int, told: Connection
) -> None:
    heard: Heard = {}
    loop, places = asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)

    async def connect(device: Device) -> None:
        kind, port = (_Mqtt, mqtt_port) if device.speaks_mqtt else (_Socket, live_port)
        async with places:
            line = kind(device, heard)
            await loop.create_connection(lambda: line, "127.0.0.1", port)
            await line.is_ready

    await asyncio.gather(*(connect(each) for each in devices))
    told.send("ready")
    while True:
        count = await asyncio.to_thread(told.recv)
        async with asyncio.timeout(SECONDS):
            while len(heard) < count:
                await asyncio.sleep(0.01)
        told.send(dict(heard))
        heard.clear()


class _Line(asyncio.Protocol):
    """A connection of a device."""

    def __init__(self, device: Device, heard: Heard) -> None:
        self.is_ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._device = device
        self._heard = heard
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._hello())

    def connection_lost(self, error: Exception | None) -> None:
        if not self.is_ready.done():
            self.is_ready.set_exception(RuntimeError(f"not let in: {self._buffer!r} {error}"))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._read(time.perf_counter())

    def _hello(self) -> bytes:
        raise NotImplementedError

    def _read(self, now: float) -> None:
        raise NotImplementedError

    def _ready(self) -> None:
        if not self.is_ready.done():
            self.is_ready.set_result(None)


class _Mqtt(_Line):
    """As much of MQTT 3.1.1 as is measured: one subscription of quality of service 1."""

    def _hello(self) -> bytes:
        name, token = self._device.key.id, self._device.token
        hello = b"\0\4MQTT\4\xc2\0\0" + _text(name) + _text("bench") + _text(token)
        return _packet(0x10, hello) + _packet(0x82, b"\0\1" + _text(f"{name}/actions") + b"\1")

    def _read(self, now: float) -> None:
        while (found := _first_packet(self._buffer)) is not None:
            first, content, self._buffer = found
            if first >> 4 == 9:
                self._ready()
            elif first >> 4 == 3:
                (size,) = struct.unpack_from(">H", content)
                for found_id in _ID.finditer(content):
                    self._heard.setdefault(found_id[1].decode(), now)
                self._transport.write(b"\x40\2" + content[2 + size : 4 + size])


class _Socket(_Line):
    """As much of a WebSocket as is measured: frames of one piece each."""

    def __init__(self, device: Device, heard: Heard) -> None:
        super().__init__(device, heard)
        self._unreported: dict[bytes, None] = {}
        self._is_open = False

    def _hello(self) -> bytes:
        return (
            f"GET /{self._device.key.id}/actuations/live HTTP/1.1\r\nHost: x\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            f"Authorization: {self._device.token}\r\n\r\n"
        ).encode()

    def _read(self, now: float) -> None:
        if not self._is_open:
            _, end, rest = self._buffer.partition(b"\r\n\r\n")
            if not end:
                return
            self._is_open, self._buffer = True, rest
        while (found := _first_frame(self._buffer)) is not None:
            first, content, self._buffer = found
            if first == PING:
                self._send(PONG, content)
            else:
                self._hear(content, now)

    def _hear(self, content: bytes, now: float) -> None:
        said = _SAID.search(content)
        if said is None:
            self._ready()
        elif said["new"]:
            self._heard.setdefault(said["new"].decode(), now)
            self._unreported[said["new"]] = None
            self._report(said["new"])
        elif said["reported"]:
            self._unreported.pop(said["reported"], None)
        else:
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._report_anew)

    def _report(self, id_: bytes) -> None:
        self._send(TEXT, _REPORT % id_)

    def _send(self, first: int, content: bytes) -> None:
        """Send a frame of at most 125 bytes. Its mask is zero, so they stay as they are."""
        self._transport.write(bytes([first, 0x80 | len(content)]) + bytes(4) + content)

    def _report_anew(self) -> None:
        """Say once more what could not be taken; saying it twice changes nothing."""
        for each in self._unreported:
            self._report(each)


def _first_frame(data: bytes) -> tuple[int, bytes, bytes] | None:
    """Return a frame's first byte, what it holds, and what follows it; None: not all is here."""
    if len(data) < 4:
        return None
    size, begin = data[1], 2
    if size == 126:
        size, begin = int.from_bytes(data[2:4], "big"), 4
    end = begin + size
    return (data[0], data[begin:end], data[end:]) if len(data) >= end else None


def _first_packet(data: bytes) -> tuple[int, bytes, bytes] | None:
    """Return a packet's first byte, what it holds, and what follows it; None: not all is here."""
    size = 0
    for place in range(1, min(5, len(data))):
        size |= (data[place] & 127) << 7 * (place - 1)
        if data[place] < 128:
            end = place + 1 + size
            return (data[0], data[place + 1 : end], data[end:]) if len(data) >= end else None
    return None


def _packet(first: int, content: bytes) -> bytes:
    size, length = len(content), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([first]) + length + bytes([size]) + content


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text.encode())) + text.encode()
