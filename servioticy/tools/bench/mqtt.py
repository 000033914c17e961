"""MQTT to MQTT: from a device's PUBLISH to the derived update on another client.

One composite, at a steady rate, everything on this machine. What is published has quality of
service 1, and the derived stream is watched as `updates/OBJECT/s1`. The clock starts before
the packet is written and stops when the message has been read. Then as many as go through with
one client, until the last is acknowledged.
"""

from __future__ import annotations

import argparse
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence

import orjson

from servioticy.settings import Settings
from servioticy.settings.places import reachable
from servioticy.tools.bench import ground

PUBLISH, PUBACK, SUBSCRIBE, CONNECT = 0x32, 0x40, 0x82, 0x10
SECONDS = 30.0


class Client:
    """As much of MQTT 3.1.1 as is measured."""

    def __init__(self, settings: Settings, token: str, name: str) -> None:
        place = reachable(settings.host), settings.mqtt.port
        self._socket = socket.create_connection(place, SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        hello = b"\0\4MQTT\4\xc2\0\0" + _text(name) + _text("bench") + _text(token)
        self._send(CONNECT, hello)
        self.packets = self._packets()
        next(self.packets)

    def subscribe(self, topic: str) -> None:
        """Subscribe, and wait for the answer."""
        self._send(SUBSCRIBE, b"\0\1" + _text(topic) + b"\0")
        next(self.packets)

    def publish(self, topic: str, number: int, payload: bytes) -> None:
        """Publish with quality of service 1."""
        self._send(PUBLISH, _text(topic) + struct.pack(">H", number % 65_535 + 1) + payload)

    def close(self) -> None:
        """Let the connection go."""
        self._socket.close()

    def _send(self, first: int, content: bytes) -> None:
        size, length = len(content), b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        self._socket.sendall(bytes([first]) + length + bytes([size]) + content)

    def _packets(self) -> Iterator[tuple[int, bytes]]:
        while True:
            first, size, shift = self._take(1)[0], 0, 0
            while True:
                byte = self._take(1)[0]
                size |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            yield first, self._take(size)

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            part = self._socket.recv(65_536)
            if not part:
                raise RuntimeError("the platform has closed the connection")
            self._buffer += part
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print p50, p90, p99 and the largest in milliseconds, and updates a second."""
    parser = argparse.ArgumentParser("servioticy bench mqtt")
    parser.add_argument("--rate", type=float, default=50.0, help="updates a second")
    parser.add_argument("--seconds", type=float, default=15.0, help="measured")
    parser.add_argument("--updates", type=int, default=5_000, help="as fast as they go")
    options = parser.parse_args(arguments)
    with ground.platform(settings) as found:
        token = ground.token(found)
        with ground.client(found, token) as client:
            name = client.create(ground.chain(1))
        watcher, device = Client(found, token, "watcher"), Client(found, token, "device")
        watcher.subscribe(f"updates/{name}/s1")
        _latencies(device, watcher, name, 0, 100, options.rate)
        count = int(options.rate * options.seconds)
        values = _latencies(device, watcher, name, 100, count, options.rate)
        cuts = " ".join(f"{part} {ground.percentile(values, at):.1f}" for part, at in _PARTS)
        print(f"publish to derived: {cuts} max {max(values):.1f} ms ({count} updates)")
        seconds = _flood(device, name, 100 + count, options.updates)
        print(f"one client, acknowledged: {options.updates / seconds:.0f} updates/s")
        watcher.close()
        device.close()


_PARTS = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))


def _latencies(
    device: Client, watcher: Client, name: str, first: int, count: int, rate: float
) -> list[float]:
    sent: dict[int, float] = {}
    arrived: dict[int, float] = {}

    def listen() -> None:
        while len(arrived) < count:
            _, content = next(watcher.packets)
            at = time.perf_counter()
            (size,) = struct.unpack_from(">H", content)
            arrived[orjson.loads(content[2 + size :])["lastUpdate"]] = at

    def acknowledged() -> None:
        for _ in range(count):
            next(device.packets)

    threads = [threading.Thread(target=each) for each in (listen, acknowledged)]
    for each in threads:
        each.start()
    began = time.perf_counter()
    for number in range(count):
        pause = began + number / rate - time.perf_counter()
        if pause > 0:
            time.sleep(pause)
        sent[first + number] = time.perf_counter()
        device.publish(f"updates/{name}/s0", number, _update(first + number))
    for each in threads:
        each.join()
    return [(arrived[at] - sent[at]) * 1000 for at in sent]


def _flood(device: Client, name: str, first: int, count: int) -> float:
    """Return in how many seconds so many are acknowledged."""
    began = time.perf_counter()

    def send() -> None:
        for number in range(count):
            device.publish(f"updates/{name}/s0", number, _update(first + number))

    sender = threading.Thread(target=send)
    sender.start()
    for _ in range(count):
        next(device.packets)
    sender.join()
    return time.perf_counter() - began


def _update(at: int) -> bytes:
    return b'{"channels":{"v":{"current-value":%d}},"lastUpdate":%d}' % (at, at)


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text.encode())) + text.encode()
