"""Whatever one tenant, or nobody we know, does with connections: the others are served."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until

from servioticy.errors import Unavailable

SILENT = 10_000
MANY = 200
FILES_OF_OUR_OWN = 500
SIMPLE = {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}


@pytest.fixture(scope="module")
def victim(platform: RunningPlatform) -> Callable[[int], None]:
    """Another tenant, who puts an update and insists on its being accepted at once."""
    token = platform.command("tenant", "create", "victim").stdout.strip()
    status, _, body = platform.request("POST", "/", SIMPLE, token)
    assert status == 201, body
    path = f"/{json.loads(body)['id']}/streams/data"

    def put(timestamp: int) -> None:
        update = {"channels": {"v": {"current-value": 1}}, "lastUpdate": timestamp}
        status, _, body = platform.request("PUT", path, update, token)
        assert status == 202, body

    return put


@pytest.fixture
def device(platform: RunningPlatform) -> str:
    """The attacker's own Service Object."""
    return platform.create(SIMPLE)


@pytest.fixture
def sockets(platform: RunningPlatform) -> Iterator[Callable[[bytes], socket.socket]]:
    """Connections on which something has been sent, all closed in the end."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.ExitStack() as stack:

        def connect(sent: bytes) -> socket.socket:
            address = ("127.0.0.1", platform.api_port)
            client = stack.enter_context(socket.create_connection(address, 30))
            client.sendall(sent)
            return client

        yield connect


@contextlib.contextmanager
def meanwhile(work: Callable[[], None], count: int) -> Iterator[list[int]]:
    """Do the work again and again in so many threads; how often it was done."""
    stop, done = threading.Event(), [0] * count

    def again(number: int) -> None:
        while not stop.is_set():
            with contextlib.suppress(Unavailable):
                work()
                done[number] += 1

    threads = [threading.Thread(target=again, args=(n,), daemon=True) for n in range(count)]
    for each in threads:
        each.start()
    try:
        yield done
    finally:
        stop.set()
        for each in threads:
            each.join(SECONDS_TO_RECOVER)


def answered(clients: list[socket.socket]) -> int:
    """On how many of them something has come, or which were closed."""
    poll = select.poll()
    for each in clients:
        poll.register(each, select.POLLIN)
    return len(poll.poll(0))


def test_ten_thousand_silent_connections_harm_nobody(
    sockets: Callable[[bytes], socket.socket], victim: Callable[[int], None]
) -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    silent = [sockets(b"") for _ in range(min(SILENT, limit - FILES_OF_OUR_OWN))]

    for timestamp in range(20):
        victim(timestamp)

    assert answered(silent) < len(silent)


def test_half_sent_bodies_harm_nobody(
    platform: RunningPlatform,
    device: str,
    sockets: Callable[[bytes], socket.socket],
    victim: Callable[[int], None],
) -> None:
    """Devices on bad radio do that."""
    head = (
        f"PUT /{device}/streams/data HTTP/1.1\r\nHost: x\r\nAuthorization: {platform.token}\r\n"
        "Content-Length: 1000\r\n\r\n{"
    )
    half = [sockets(head.encode()) for _ in range(MANY)]

    for timestamp in range(20):
        victim(timestamp)

    assert answered(half) == 0


def test_reads_behind_a_busy_partition_harm_nobody(
    platform: RunningPlatform, device: str, victim: Callable[[int], None]
) -> None:
    """They wait as long as they may, all of them, and hold no thread meanwhile."""
    pipeline = os.getpgid(platform.pids()["pipeline"])
    path = f"/{device}/streams/data"
    os.killpg(pipeline, signal.SIGSTOP)
    try:
        update = {"channels": {"v": {"current-value": 1}}, "lastUpdate": 1}
        assert platform.request("PUT", path, update)[0] == 202
        status, headers, _ = platform.request("GET", path)
        assert status == 204
        assert int(headers["x-servioticy-behind"]) > 0
        with meanwhile(lambda: _read(platform, path), MANY) as reads:
            until(lambda: sum(reads) >= MANY, SECONDS_TO_RECOVER)
            for timestamp in range(100, 120):
                victim(timestamp)
    finally:
        os.killpg(pipeline, signal.SIGCONT)


def test_creations_by_one_tenant_harm_nobody(
    platform: RunningPlatform, victim: Callable[[int], None]
) -> None:
    """They wait for each other, and nobody's updates wait for them."""

    def create() -> None:
        assert platform.request("POST", "/", SIMPLE)[0] in (201, 429, 503)

    with meanwhile(create, MANY) as created:
        until(lambda: sum(created) > 0, SECONDS_TO_RECOVER)
        for timestamp in range(200, 220):
            victim(timestamp)


def _read(platform: RunningPlatform, path: str) -> None:
    status, _, body = platform.request("GET", path)
    assert status in (200, 204, 429), body
