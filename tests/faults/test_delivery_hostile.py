"""Clients that mean harm: the others lose nothing, and we stay within our limits.

The program runs in a thread of the test, on real sockets, with stores in memory that count.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from delivery import server as program
from delivery import watch
from delivery.capacity import Capacity
from delivery.door import BURST_BYTES, MAX_REQUEST_BYTES
from delivery.server import ASKED_AT_ONCE, PAGES_AT_ONCE, Delivery
from servioticy.client.follower import Follower
from servioticy.domain.model import LastUpdate, StreamKey, StreamRef, Timestamp
from servioticy.domain.records import EmittedRecord
from servioticy.embedded import tcp_ports as ports
from servioticy.ports.addresses import Address

ATTACKER, INNOCENT = "token-1", "token-2"
WAIT_SECONDS = 30.0


class Addresses:
    """`token-N` is tenant N's; every tenant has every stream. Answers while it may."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def address(
        self, token: str, service_object: str | None, stream: str | None
    ) -> Address | None:
        self.may_answer.wait(WAIT_SECONDS)
        self.asked.append(token)
        if not token.startswith("token-"):
            return None
        tenant = int(token.removeprefix("token-"))
        return Address(tenant, service_object, tenant, False, 1, 0, tenant)


class History:
    """Of every stream so many updates of a size, made when they are asked for."""

    def __init__(self) -> None:
        self.updates = 0
        self.size = 0
        self.largest_page = 0

    def updates_after(
        self, stream: StreamKey, after: Timestamp, limit: int, max_bytes: int
    ) -> list[LastUpdate]:
        fitting = min(limit, max(1, max_bytes // max(1, self.size)))
        times = range(after + 1, min(after + fitting, self.updates) + 1)
        page = [LastUpdate(at, a_document(at, self.size)) for at in times]
        self.largest_page = max(self.largest_page, sum(len(each.document) for each in page))
        return page


def a_document(at: int, size: int = 0) -> bytes:
    start = b'{"lastUpdate":%d,"v":"' % at
    return start + b"x" * (size - len(start) - 2) + b'"}'


class Running:
    """The program, and ways to meet it."""

    def __init__(self, capacity: Capacity | None = None, **limits: int) -> None:
        self.addresses, self.history = Addresses(), History()
        self.port = ports.free()
        self.delivery: Delivery
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(capacity, limits)))

    async def _run(self, capacity: Capacity | None, limits: dict[str, int]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self.delivery = Delivery(self.addresses, self.history, capacity, **limits)  # type: ignore[arg-type]
        await self.delivery.listen("127.0.0.1", self.port)
        self._ready.set()
        await self._stop.wait()
        await self.delivery.close()

    def __enter__(self) -> Running:
        self._thread.start()
        assert self._ready.wait(WAIT_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self.addresses.may_answer.set()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive(), "it did not stop"

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for a condition, asked in the program's own loop."""

        async def ask() -> bool:
            return is_so()

        deadline = time.monotonic() + WAIT_SECONDS
        while not asyncio.run_coroutine_threadsafe(ask(), self._loop).result(WAIT_SECONDS):
            assert time.monotonic() < deadline, "that did not happen"
            time.sleep(0.01)

    def publish(self, *documents: bytes, name: str = "pump") -> None:
        self.delivery.publish(
            [
                EmittedRecord(name, "flow", 1, 1, at, msgspec.Raw(document))
                for at, document in enumerate(documents)
            ]
        )

    def watch(self, token: str, query: str = "", name: str = "pump") -> ClientConnection:
        return connect(
            f"ws://127.0.0.1:{self.port}/{name}/streams/flow/live{query}",
            additional_headers={"Authorization": token},
            compression=None,
            proxy=None,
            max_size=None,
            open_timeout=WAIT_SECONDS,
            close_timeout=0.5,
        )

    def plain(self, sent: bytes = b"") -> socket.socket:
        """A bare connection that takes next to nothing unless it is read."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(WAIT_SECONDS)
        client.connect(("127.0.0.1", self.port))
        client.sendall(sent)
        return client

    def unread(self, token: str, query: str = "", name: str = "pump") -> socket.socket:
        """An open WebSocket of which nothing but the answer to its request is read."""
        client = self.plain(a_request(f"/{name}/streams/flow/live{query}", token))
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += client.recv(1)
        assert b" 101 " in answer, answer
        return client

    def take_all_seats_of(self, tenant: int) -> None:
        """Cut its only socket off, and sit down there before it comes again."""

        def take() -> bool:
            self.delivery._door.cut_off_everybody()
            if len(self.delivery._seats) == 0:
                self.delivery._seats.take(tenant)
                return True
            return False

        self.until(take)

    def give_back_seat_of(self, tenant: int) -> None:
        """Let it come again."""
        self._loop.call_soon_threadsafe(self.delivery._seats.give_back, tenant)

    @property
    def sockets(self) -> int:
        return len(self.delivery._seats)

    @property
    def standing(self) -> int:
        return len(self.delivery._door)


def a_request(target: str, token: str = INNOCENT, more: str = "") -> bytes:
    return (
        f"GET {target} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        f"Authorization: {token}\r\n{more}\r\n"
    ).encode("latin-1")


def received(client: socket.socket) -> bytes:
    """All that comes until the other side ends it."""
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(65_536):
            got += part
    client.close()
    return got


def status(client: socket.socket) -> int:
    return int(received(client).split(b" ", 2)[1])


@pytest.fixture
def many() -> Iterator[list[socket.socket]]:
    """Connections that are closed in the end."""
    clients: list[socket.socket] = []
    yield clients
    for client in clients:
        client.close()


UGLY = [
    b'{"v":"\xff"}',
    b'{"v":"\xed\xa0\x80"}',
    b"",
    b"null",
    b"[" * 100_000,
    b"\0",
]


def test_ugly_records_end_no_socket_and_cost_no_update() -> None:
    """Whoever makes them, and whoever watches them."""
    with (
        Running() as running,
        running.watch(ATTACKER, name="ugly") as its_own,
        running.watch(INNOCENT) as other,
    ):
        for number, ugly in enumerate(UGLY):
            running.publish(ugly, name="ugly")
            running.publish(rb'{"v":"\ud800"}', b'{"v":"' + b"x" * 2_000_000 + b'"}', name="ugly")
            running.publish(a_document(number))

        assert [json.loads(other.recv(10))["lastUpdate"] for _ in UGLY] == list(range(len(UGLY)))
        assert [len(its_own.recv(10)) for _ in range(4)] == [14, 2_000_008] * 2


def test_catch_ups_that_nobody_reads_are_bounded_by_bytes() -> None:
    """Sixty times a history of a gigabyte, and one socket that reads its own to the end."""
    with Running() as running, contextlib.ExitStack() as open_sockets:
        running.history.updates, running.history.size = 10_000, 100_000
        tracemalloc.start()
        open_sockets.callback(tracemalloc.stop)
        for _ in range(60):
            open_sockets.enter_context(running.unread(ATTACKER, "?after=0"))
        reader = open_sockets.enter_context(running.watch(INNOCENT, "?after=9900"))
        got = [json.loads(reader.recv(30))["lastUpdate"] for _ in range(100)]
        peak = tracemalloc.get_traced_memory()[1]

        assert got == list(range(9901, 10_001))
        assert running.history.largest_page <= 262_144
        # A page, a full buffer, two updates on their way, and the connection: 0.7 MB each.
        assert peak < 61 * 700_000 + 5_000_000


def test_the_budget_for_all_is_kept_by_those_who_do_not_read() -> None:
    """They lose their sockets, whoever reads keeps his, however many they are."""
    budget = 4 * 1024 * 1024
    with (
        Running(max_backlog_bytes=budget) as running,
        contextlib.ExitStack() as open_sockets,
    ):
        running.history.updates, running.history.size = 10_000, 50_000
        reader = open_sockets.enter_context(running.watch(INNOCENT, "?after=0"))
        for _ in range(60):
            open_sockets.enter_context(running.unread(ATTACKER, "?after=0"))
        for at in range(1, 201):
            assert json.loads(reader.recv(30))["lastUpdate"] == at
        running.until(lambda: running.sockets < 40)

        running.until(lambda: running.delivery._backlog.total <= budget)
        assert json.loads(reader.recv(30))["lastUpdate"] == 201


def test_what_is_remembered_of_many_histories_is_bounded_and_closes_nobody() -> None:
    """Tiny updates: to remember them takes more than to send them."""
    budget = 2 * 1024 * 1024
    with (
        Running(max_backlog_bytes=budget) as running,
        contextlib.ExitStack() as open_sockets,
    ):
        running.history.updates, running.history.size = 2_000, 30
        clients = [
            open_sockets.enter_context(running.watch(ATTACKER, "?after=0")) for _ in range(20)
        ]
        for client in clients:
            for at in range(1, 2_001):
                assert json.loads(client.recv(30))["lastUpdate"] == at
        running.publish(a_document(9_999))

        assert {json.loads(client.recv(30))["lastUpdate"] for client in clients} == {9_999}
        assert running.sockets == 20
        running.until(lambda: running.delivery._backlog.total <= budget)


def test_sockets_are_limited_for_each_tenant_and_in_all() -> None:
    with (
        Running(Capacity(sockets=5, sockets_per_tenant=3)) as running,
        contextlib.ExitStack() as open_sockets,
    ):
        first = [open_sockets.enter_context(running.watch(ATTACKER)) for _ in range(3)]
        with pytest.raises(InvalidStatus) as own:
            running.watch(ATTACKER)
        for _ in range(2):
            open_sockets.enter_context(running.watch(INNOCENT))
        with pytest.raises(InvalidStatus) as everybody:
            running.watch("token-3")
        first[0].close()
        running.until(lambda: running.sockets == 4)
        open_sockets.enter_context(running.watch("token-3"))

        assert [each.value.response.status_code for each in (own, everybody)] == [429, 503]
        assert int(own.value.response.headers["Retry-After"]) > 0
        assert json.loads(everybody.value.response.body)["status"] == 503


def test_a_follower_whose_place_is_taken_waits_for_the_next() -> None:
    """After a restart all sockets of a tenant come again at once."""
    frames: queue.Queue[str] = queue.Queue()
    stop = threading.Event()
    with Running(Capacity(sockets_per_tenant=1)) as running:
        url = f"ws://127.0.0.1:{running.port}"
        follower = Follower(url, StreamRef("pump", "flow"), INNOCENT, after=0)

        def follow() -> None:
            for frame in follower.updates(stop):
                frames.put(frame)

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        running.until(lambda: running.sockets == 1)
        running.publish(a_document(1, 1_900_000))
        assert json.loads(frames.get(timeout=10))["lastUpdate"] == 1
        asked = len(running.addresses.asked)
        running.take_all_seats_of(2)
        running.until(lambda: len(running.addresses.asked) > asked)  # it was told 429
        running.give_back_seat_of(2)
        running.until(lambda: running.sockets == 1)
        running.publish(a_document(2))

        assert json.loads(frames.get(timeout=10))["lastUpdate"] == 2
        stop.set()
        thread.join(WAIT_SECONDS)


def test_seats_of_requests_that_end_without_a_socket_are_given_back() -> None:
    """A good token, and no upgrade."""
    with Running(Capacity(sockets=1)) as running:
        for _ in range(3):
            target = "/pump/streams/flow/live"
            asked = running.plain(
                f"GET {target} HTTP/1.1\r\nAuthorization: {INNOCENT}\r\n\r\n".encode()
            )
            assert status(asked) == 426
            running.until(lambda: running.sockets == 0)
        with running.watch(INNOCENT):
            pass


def test_thousands_of_silent_connections_keep_nobody_out(many: list[socket.socket]) -> None:
    """They go, the oldest first, as soon as there are too many of them."""
    with Running(Capacity(standing=200)) as running:
        for _ in range(3_000):
            many.append(running.plain())
        with running.watch(INNOCENT) as honest:
            running.publish(a_document(1))

            assert json.loads(honest.recv(10))["lastUpdate"] == 1
        running.until(lambda: running.standing <= 200)
        assert received(many[0]) == b""


def test_exactly_so_many_may_stand_at_the_door(many: list[socket.socket]) -> None:
    with Running(Capacity(standing=20)) as running:
        many += [running.plain() for _ in range(20)]
        running.until(lambda: running.standing == 20)
        many[0].setblocking(False)
        with pytest.raises(BlockingIOError):
            many[0].recv(1)
        many[0].settimeout(WAIT_SECONDS)
        many.append(running.plain())

        assert received(many[0]) == b""
        running.until(lambda: running.standing == 20)


@pytest.mark.parametrize("begin", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nA: b\r\n"])
def test_a_request_has_to_be_made_in_time(monkeypatch, begin: bytes) -> None:
    monkeypatch.setattr(program, "HANDSHAKE_SECONDS", 0.2)
    with Running() as running:
        assert received(running.plain(begin)) == b""
        running.until(lambda: running.standing == 0)


TARGETS = [
    ("//[/x", 400),
    ("http://[/pump/streams/flow/live", 400),
    ("/pump/streams/flow/live?after=" + "9" * 4000, 400),
    ("/%00/streams/%ff/live", 101),
    ("/" + "x" * 9000, 414),
    ("/é/streams/flow/live", 400),
    ("", 404),
    ("*", 404),
    ("/pump/streams/flow/live HTTP/1.1 x", 400),
    ("/health\0", 404),
]


@pytest.mark.parametrize(("target", "expected"), TARGETS, ids=[each[0][:20] for each in TARGETS])
def test_whatever_is_asked_for_is_not_our_mistake(target: str, expected: int) -> None:
    with Running() as running:
        client = running.plain(a_request(target))
        answer = client.recv(65_536)
        client.close()

        assert int(answer.split(b" ", 2)[1]) == expected


@pytest.mark.parametrize(
    "sent", [b"\r\n", b"\0\xff\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\n", b": \n"]
)
def test_what_is_no_request_at_all_is_answered_and_closed(sent: bytes) -> None:
    with Running() as running:
        client = running.plain(sent)
        client.shutdown(socket.SHUT_WR)

        assert status(client) == 400


def test_a_request_may_have_so_many_bytes_and_no_more() -> None:
    """In lines each of which would pass."""
    bare = len(a_request("/pump/streams/flow/live"))

    def padded(missing: int) -> bytes:
        lines = "".join(f"A: {'x' * 995}\r\n" for _ in range(missing // 1000 - 1))
        last = missing - len(lines)
        return a_request("/pump/streams/flow/live", more=lines + f"B: {'x' * (last - 5)}\r\n")

    with Running() as running:
        for size, expected in ((MAX_REQUEST_BYTES, b" 101 "), (MAX_REQUEST_BYTES + 1, b" 431 ")):
            request = padded(size - bare)
            assert len(request) == size
            client = running.plain(request)
            assert expected in client.recv(100)
            client.close()
        endless = running.plain(b"GET / HTTP/1.1\r\n")
        with contextlib.suppress(OSError):
            for _ in range(100):
                endless.sendall(b"A: b\r\n" * 1000)
        endless.close()
        running.until(lambda: running.standing == 0)


def test_a_flood_of_requests_waits_for_itself_alone(many: list[socket.socket]) -> None:
    """Invented tokens, each another one; the store answers nobody for a while."""
    with Running(Capacity(asking=300, asking_each=100)) as running:
        with running.watch(INNOCENT):
            pass
        running.until(lambda: running.sockets == 0)
        running.addresses.asked.clear()
        running.addresses.may_answer.clear()
        target = "/pump/streams/flow/live"
        many += [running.plain(a_request(target, f"invented-{n}")) for n in range(250)]
        running.until(lambda: running.standing == 250 - 100 - ASKED_AT_ONCE)
        honest = running.plain(a_request(target))
        many.append(honest)
        running.until(lambda: len(running.delivery._asked._places) == 101)
        running.addresses.may_answer.set()

        assert b" 101 " in honest.recv(1000)
        running.until(lambda: len(running.addresses.asked) == 101 + ASKED_AT_ONCE)
        # Each that was being asked may have been followed by one of the flood.
        assert running.addresses.asked.index(INNOCENT) <= 2 * ASKED_AT_ONCE
        assert status(many[249]) == 429


def test_a_thousand_slow_ones_closed_at_once_cost_the_others_nothing(
    many: list[socket.socket], monkeypatch
) -> None:
    """They take not even the close frame; they are cut off before anything else ends them."""
    monkeypatch.setattr(watch, "STALL_SECONDS", 10 * WAIT_SECONDS)
    monkeypatch.setattr(program, "PING_SECONDS", 10 * WAIT_SECONDS)
    with (
        Running(max_unread_bytes=2 * watch.WRITE_BUFFER_BYTES) as running,
        running.watch(INNOCENT) as honest,
    ):
        many += [running.unread(ATTACKER) for _ in range(1_000)]
        sent = 0
        while running.sockets > 1 and sent < 200:
            running.publish(a_document(sent, 20_000))
            assert json.loads(honest.recv(30))["lastUpdate"] == sent
            sent += 1
        running.until(lambda: running.sockets == 1)
        running.publish(a_document(sent))

        assert json.loads(honest.recv(30))["lastUpdate"] == sent


def test_a_socket_that_takes_nothing_is_cut_off_though_nothing_more_comes(monkeypatch) -> None:
    """Its pings wait behind what it does not read."""
    monkeypatch.setattr(watch, "STALL_SECONDS", 0.3)
    monkeypatch.setattr(program, "LOOK_SECONDS", 0.05)
    with Running() as running:
        running.history.updates, running.history.size = 100, 100_000
        client = running.unread(ATTACKER, "?after=0")
        running.until(lambda: running.sockets == 0)
        client.close()


def test_who_stops_does_not_wait_for_those_who_do_not_listen() -> None:
    """A socket that takes nothing, and a connection that says nothing."""
    running = Running()
    with running:
        running.history.updates, running.history.size = 100, 100_000
        clients = [running.unread(ATTACKER, "?after=0"), running.plain()]
        running.until(lambda: running.delivery._backlog.total > watch.WRITE_BUFFER_BYTES)
        began = time.monotonic()
    stopped = time.monotonic() - began
    for client in clients:
        client.close()

    assert stopped < program.HANDSHAKE_SECONDS


def test_who_leaves_the_queue_of_histories_leaves_nothing_there() -> None:
    """Opened and closed ten thousand times, a queue must not grow."""
    asked, may_go = threading.Event(), threading.Event()
    with Running() as running:

        def hang(*_: Any) -> list[LastUpdate]:
            asked.set()
            may_go.wait(WAIT_SECONDS)
            return []

        running.history.updates_after = hang  # type: ignore[method-assign]
        for _ in range(PAGES_AT_ONCE + 20):
            with running.watch(ATTACKER, "?after=0"):
                pass
        assert asked.wait(WAIT_SECONDS)
        running.until(lambda: running.sockets == 0)
        running.until(lambda: len(running.delivery._pages._places) == 0)
        may_go.set()


def test_exactly_so_much_may_be_said_at_once() -> None:
    """Four masked messages of 4 KiB with their heads; then one that is more."""
    message = b"\x81\xfe" + (4088).to_bytes(2) + bytes(4) + bytes(4088)
    with Running() as running:
        client = running.unread(ATTACKER)
        client.sendall(message * (BURST_BYTES // len(message)))
        running.publish(a_document(1))
        assert a_document(1) in client.recv(1000)
        assert running.sockets == 1

        client.sendall(message)
        running.until(lambda: running.sockets == 0)
        client.close()


def test_who_talks_without_end_is_not_listened_to() -> None:
    """A second of tiny frames would keep the loop from everybody."""
    with Running() as running, running.watch(INNOCENT) as honest:
        talker = running.unread(ATTACKER)
        with contextlib.suppress(OSError):
            for _ in range(1_000):
                talker.sendall(b"\x81\x80\0\0\0\0" * 1_000)
        running.until(lambda: running.sockets == 1)
        talker.close()
        honest.ping().wait(10)
        running.publish(a_document(1))

        assert json.loads(honest.recv(10))["lastUpdate"] == 1


def test_what_was_said_before_the_socket_opened_counts_as_request() -> None:
    with Running() as running:
        client = running.plain(a_request("/pump/streams/flow/live") + b"\x81\x80\0\0\0\0" * 10_000)
        with contextlib.suppress(OSError):
            client.recv(65_536)
        client.close()
        running.until(lambda: running.sockets == 0 and running.standing == 0)


def test_a_slow_one_is_told_before_it_is_cut_off() -> None:
    """It reads in the end: the close frame says what to do."""
    with Running(max_unread_bytes=32 * 1024) as running, running.watch(ATTACKER) as slow:
        for sent in range(200):
            running.publish(a_document(sent, 100_000))
        with pytest.raises(ConnectionClosed) as end:
            while True:
                slow.recv(10)

        assert end.value.rcvd is None or "slower" in end.value.rcvd.reason
