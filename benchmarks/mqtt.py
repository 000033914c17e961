"""MQTT to MQTT: from a device's PUBLISH to the derived update on another client.

One composite, at a steady rate, everything on this machine. What is published has quality of
service 1, and the derived stream is watched as `updates/OBJECT/s1`. The clock starts before
the packet is written and stops when the message has been read. Then as many as go through with
one client, until the last is acknowledged, and what each program takes of the processor for one.

With `--broker` all of that goes over a broker of one's own that runs already and lets everybody
in, to which the platform is connected: the derived stream comes by a `pubsub` subscription, and
the last update has gone through when its derived one has come.
"""

from __future__ import annotations

import argparse
import socket
import struct
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from benchmarks import ground
from benchmarks.processes import costs, processor_seconds, tree
from servioticy.embedded.folder import read_run
from servioticy.settings import Settings, changed
from servioticy.settings.places import reachable

PUBLISH, PUBACK, SUBSCRIBE, CONNECT = 0x32, 0x40, 0x82, 0x10
SECONDS = 30.0
TAKING = ("broker", "api", "postgres", "kafka")


class Client:
    """As much of MQTT 3.1.1 as is measured."""

    def __init__(self, place: tuple[str, int], token: str, name: str) -> None:
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
    parser.add_argument("--broker", metavar="HOST:PORT", help="an external broker to go over")
    options = parser.parse_args(arguments)
    if options.broker is None:
        _over_ours(settings, options)
    else:
        _over_another(settings, options)


def _over_ours(settings: Settings, options: argparse.Namespace) -> None:
    with ground.platform(settings) as found:
        token, place = ground.token(found), (reachable(found.host), found.mqtt.port)
        with ground.client(found, token) as client:
            name = client.create(ground.chain(1))
        watcher, device = Client(place, token, "watcher"), Client(place, token, "device")
        watcher.subscribe(f"updates/{name}/s1")
        count = _steadily(device, watcher, f"updates/{name}/s0", options)
        before = _used(found)
        seconds = _flood(device, device, f"updates/{name}/s0", count, options.updates)
        spent = costs(before, _used(found), options.updates)
        print(f"one client, acknowledged: {options.updates / seconds:.0f} updates/s")
        print(f"of the processor, an update: {spent}")
        watcher.close()
        device.close()


def _over_another(settings: Settings, options: argparse.Namespace) -> None:
    """The platform is started twice: a binding needs a token, and that a platform."""
    host, _, port = options.broker.rpartition(":")
    place, wish = (host, int(port)), {"callback": "pubsub", "destination": "derived"}
    with ground.folder(settings) as own:
        with ground.running(own) as found:
            token = ground.token(found)
            with ground.client(found, token) as client:
                name = client.create(ground.chain(1))
                client.request("POST", f"/{name}/streams/s1/subscriptions", wish)
        bound = changed(own, bridge_url=f"mqtt://{options.broker}", bridge_tenants={"b": token})
        with ground.running(bound) as found:
            _wait_for_bridge(found)
            watcher, device = Client(place, token, "watcher"), Client(place, token, "device")
            watcher.subscribe("b/derived/#")
            count = _steadily(device, watcher, f"b/updates/{name}/s0", options)
            seconds = _flood(device, watcher, f"b/updates/{name}/s0", count, options.updates)
            print(f"one client, derived: {options.updates / seconds:.0f} updates/s")
            watcher.close()
            device.close()


def _used(found: Settings) -> dict[str, float]:
    """Return the seconds of processor time so far of what takes updates, if it runs here."""
    facts = read_run(Path(found.data)) or {}
    pids = {name: pid for name, pid in facts.get("pids", {}).items() if name in TAKING}
    return {name: sum(map(processor_seconds, tree(pid))) for name, pid in pids.items()}


def _wait_for_bridge(found: Settings) -> None:
    """Wait until the platform is connected; what is published before is kept by nobody."""
    port, until = found.mqtt.metrics_port, time.monotonic() + SECONDS
    while time.monotonic() < until:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            if b"servioticy_bridge_connections 1" in answer.read():
                return
        time.sleep(0.1)
    raise RuntimeError("the platform does not connect to the broker; its log tells why")


def _steadily(device: Client, watcher: Client, topic: str, options: argparse.Namespace) -> int:
    """Measure at a rate; return how many updates there were."""
    _latencies(device, watcher, topic, 0, 100, options.rate)
    count = int(options.rate * options.seconds)
    values = _latencies(device, watcher, topic, 100, count, options.rate)
    cuts = " ".join(f"{part} {ground.percentile(values, at):.1f}" for part, at in _PARTS)
    print(f"publish to derived: {cuts} max {max(values):.1f} ms ({count} updates)")
    return 100 + count


_PARTS = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))


def _latencies(
    device: Client, watcher: Client, topic: str, first: int, count: int, rate: float
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
        device.publish(topic, number, _update(first + number))
    for each in threads:
        each.join()
    return [(arrived[at] - sent[at]) * 1000 for at in sent]


def _flood(device: Client, judge: Client, topic: str, first: int, count: int) -> float:
    """Return in how many seconds so many have gone through, which the judge gets a packet for."""
    began = time.perf_counter()

    def send() -> None:
        for number in range(count):
            device.publish(topic, number, _update(first + number))

    sender = threading.Thread(target=send)
    sender.start()
    for _ in range(count):
        next(judge.packets)
    sender.join()
    return time.perf_counter() - began


def _update(at: int) -> bytes:
    return b'{"channels":{"v":{"current-value":%d}},"lastUpdate":%d}' % (at, at)


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text.encode())) + text.encode()
