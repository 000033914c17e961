"""HTTP callbacks a second, where many receivers are bad, and what another tenant sees of them.

Of one tenant's receivers 30 % refuse everything and 10 % never answer; the others take what they
can. Another tenant has one receiver, which is well: how long its updates take, alone and beside
all that, is the answer to whether tenants are apart.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import orjson

from benchmarks import ground
from servioticy.client.rest import Rest
from servioticy.embedded import tcp_ports as ports
from servioticy.settings import Settings, changed

FAILING, HANGING = 0.3, 0.1
ADDRESSES = [f"127.0.0.{number}" for number in range(1, 51)]
"""Callbacks of a tenant to one host are bounded."""
BATCH = 50
PAUSE_SECONDS = 0.1
"""Between two updates of the tenant that is well."""

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
REFUSED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
DEVICE = {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}


class Receivers:
    """All receivers at one port: the path says what each is like."""

    def __init__(self) -> None:
        self.taken = 0
        self.refused = 0
        self.left_hanging = 0
        self.arrived: dict[int, float] = {}
        """When each update of the tenant that is well came first."""
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                body = await reader.readexactly(length)
                writer.write(await self._answer(head, body))
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"POST /hanging"):
            self.left_hanging += 1
            await asyncio.sleep(3_600)
        if head.startswith(b"POST /failing"):
            self.refused += 1
            return REFUSED
        if head.startswith(b"POST /other"):
            self.arrived.setdefault(orjson.loads(body)["lastUpdate"], time.perf_counter())
        else:
            self.taken += 1
        return OK


@contextmanager
def _receiving() -> Iterator[Receivers]:
    """Receive in a thread of its own."""
    receivers, loop = Receivers(), asyncio.new_event_loop()
    receivers.port = ports.free()
    start = asyncio.start_server(receivers.serve, ADDRESSES, receivers.port, backlog=1_000)
    loop.run_until_complete(start)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield receivers
    finally:
        asyncio.run_coroutine_threadsafe(_end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _end() -> None:
    """End all connections, whatever hangs there."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print callbacks a second, and the other tenant's latency alone and beside them."""
    parser = argparse.ArgumentParser("servioticy bench callbacks")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--receivers", type=int, default=100)
    wanted = parser.parse_args(arguments)
    own = changed(settings, live_callback_networks="127.0.0.0/8")
    with _receiving() as receivers, ground.platform(own) as running:
        _measure(running, receivers, wanted.seconds, wanted.receivers)


def _measure(settings: Settings, receivers: Receivers, seconds: float, count: int) -> None:
    busy = ground.client(settings, ground.token(settings))
    other = ground.client(settings, ground.token(settings, "other"))
    with busy, other:
        source, quiet = busy.create(DEVICE), other.create(DEVICE)
        other.subscribe(quiet, "data", _http(receivers, "/other", 0))
        sent: dict[int, float] = {}
        _send_quietly(other, quiet, sent, 1, seconds / 2)
        alone = len(sent)
        for number in range(count):
            kind = _kind(number / count)
            busy.subscribe(source, "data", _http(receivers, f"/{kind}/{number}", number))
        stop = threading.Event()
        load = threading.Thread(target=_load, args=(busy, source, receivers, count, stop))
        load.start()
        time.sleep(2 * PAUSE_SECONDS)
        before, began = receivers.taken, time.perf_counter()
        _send_quietly(other, quiet, sent, alone + 1, seconds)
        taken, took = receivers.taken - before, time.perf_counter() - began
        stop.set()
        load.join()
        _wait_for(receivers, len(sent))
    waits = [1000 * (receivers.arrived[at] - sent[at]) for at in sorted(sent)]
    print(
        f"{count} receivers, {FAILING:.0%} failing, {HANGING:.0%} hanging: {taken / took:.0f} "
        f"callbacks/s taken; {receivers.refused} refused, {receivers.left_hanging} left hanging"
    )
    for name, part in (("alone", waits[:alone]), ("beside", waits[alone:])):
        p50, p99 = (ground.percentile(part, each) for each in (0.5, 0.99))
        print(f"another tenant's, {name}: {len(part)} updates, p50 {p50:.1f} ms, p99 {p99:.1f} ms")


def _kind(part: float) -> str:
    if part < HANGING:
        return "hanging"
    return "failing" if part < HANGING + FAILING else "well"


def _http(receivers: Receivers, path: str, number: int) -> dict[str, str]:
    host = ADDRESSES[number % len(ADDRESSES)]
    return {"callback": "http", "destination": f"http://{host}:{receivers.port}{path}"}


def _send_quietly(
    client: Rest, device: str, sent: dict[int, float], first: int, seconds: float
) -> None:
    """Send an update now and then, and note when."""
    until = time.perf_counter() + seconds
    at = first
    while time.perf_counter() < until:
        sent[at] = time.perf_counter()
        client.put(device, "data", {"channels": {"v": {"current-value": at}}, "lastUpdate": at})
        at += 1
        time.sleep(PAUSE_SECONDS)


def _load(
    client: Rest, device: str, receivers: Receivers, count: int, stop: threading.Event
) -> None:
    """Keep the receivers that are well busy: a batch more whenever they have nearly all."""
    well = sum(_kind(number / count) == "well" for number in range(count))
    at = 1
    while not stop.is_set():
        if receivers.taken + well * BATCH < at * well:
            time.sleep(0.005)
            continue
        values = [{"v": {"current-value": n}} for n in range(at, at + BATCH)]
        client.put_many(
            device,
            "data",
            [{"channels": each, "lastUpdate": at + n} for n, each in enumerate(values)],
        )
        at += BATCH


def _wait_for(receivers: Receivers, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(receivers.arrived) < count and time.monotonic() < deadline:
        time.sleep(0.05)
