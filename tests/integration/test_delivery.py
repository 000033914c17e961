"""The delivery program itself, on a real broker and a real Postgres."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Producer
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from sandbox import argument_names
from servioticy import bootstrap
from servioticy.client.follower import Follower
from servioticy.domain.emissions import emission
from servioticy.domain.model import StreamRef
from servioticy.domain.records import EmittedRecord
from servioticy.domain.topics import MAX_MESSAGE_BYTES, Topics
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.messaging.admin import ensure_topics
from servioticy.messaging.emitter import Emitter
from servioticy.ports.change_store import NewServiceObject
from servioticy.ports.partition_store import Batch, StoredUpdate
from servioticy.settings import Settings, load, to_environment
from servioticy.storage.addresses import PostgresAddresses
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.tenants import PostgresTenants

WAIT_SECONDS = 120.0


def a_document(at: int, padding: int = 0) -> bytes:
    filler = f',"padding":"{"x" * padding}"' if padding else ""
    return f'{{"channels":{{"v":{{"current-value":{at}}}}},"lastUpdate":{at}{filler}}}'.encode()


class World:
    """A tenant `ours` with objects `mine` and `open`, and a tenant `theirs` with `private`."""

    def __init__(self, settings: Settings, program: subprocess.Popen[bytes]) -> None:
        self.settings = settings
        self.program = program
        database = bootstrap.connect(settings)
        self.addresses = PostgresAddresses(database)
        tenants = PostgresTenants(database)
        self.ours, self.theirs = map(tenants.create_tenant, ("ours", "theirs"))
        for name, token, public in (
            ("mine", self.ours, False),
            ("open", self.theirs, True),
            ("private", self.theirs, False),
        ):
            tenant = tenants.tenant_of(token) or 0
            document = b'{"streams":{"data":{"channels":{"v":{"type":"number"}}}}}'
            new = NewServiceObject(name, tenant, public, document, ("data",), (), 1)
            PostgresChangeStore(database).create(new, 1)
        self.store = PostgresPartitionStore(database, argument_names)
        self.store.begin(0)
        self.offset = 0
        self.emitter: Emitter = bootstrap.emitter(settings, 0)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.settings.delivery.port}"

    def stored(self, *times: int, name: str = "mine", padding: int = 0) -> None:
        address = self.addresses.address(self.ours, name, "data")
        assert address is not None
        rows = [
            StoredUpdate(
                address.owner or 0, address.stream_id or 0, at, a_document(at, padding), 1, n, 0
            )
            for n, at in enumerate(times, self.offset)
        ]
        after = self.offset + len(rows)
        self.store.store(Batch(0, self.offset, after, 0, rows))
        self.offset = after

    def emitted(self, *times: int, name: str = "mine", padding: int = 0, version: int = 1) -> None:
        records = [
            emission(
                EmittedRecord(name, "data", 1, version, at, msgspec.Raw(a_document(at, padding)))
            )
            for at in times
        ]
        self.emitter.emit(self.offset, records)
        self.emitter.flush()

    def produced(self, *values: bytes) -> None:
        """Put bytes into the topic that no emitter of ours would write."""
        servers = self.settings.log.bootstrap_servers
        producer = Producer({"bootstrap.servers": servers, "message.max.bytes": MAX_MESSAGE_BYTES})
        for value in values:
            producer.produce(Topics(self.settings.log.topic_prefix).emitted, value, partition=0)
        assert producer.flush(10) == 0

    def most_memory(self) -> int:
        """The most bytes that the program ever had in memory."""
        shown = Path(f"/proc/{self.program.pid}/status").read_text()
        return int(shown.split("VmHWM:")[1].split()[0]) * 1024

    def watch(self, query: str = "", name: str = "mine", **more: Any) -> ClientConnection:
        more.setdefault("additional_headers", {"Authorization": self.ours})
        address = f"{self.url}/{name}/streams/data/live{query}"
        return connect(address, compression=None, proxy=None, **more)


def received(connection: ClientConnection, count: int) -> list[int]:
    return [json.loads(connection.recv(timeout=10))["lastUpdate"] for _ in range(count)]


def bare(world: World, target: str) -> socket.socket:
    """A connection that has asked for a WebSocket, and reads when we read."""
    client = socket.create_connection(("127.0.0.1", world.settings.delivery.port))
    client.settimeout(10)
    client.sendall(
        (
            f"GET {target} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            f"Sec-WebSocket-Version: 13\r\nAuthorization: {world.ours}\r\n\r\n"
        ).encode()
    )
    return client


def health(port: int) -> int:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@pytest.fixture
def settings(dsn: str, real_kafka: EmbeddedKafka, topic_prefix: str) -> Settings:
    chosen = load(
        {},
        {
            "dsn": dsn,
            "bootstrap_servers": real_kafka.bootstrap_servers,
            "topic_prefix": topic_prefix,
            "live_port": ports.free(),
            "mqtt_port": ports.free(),
        },
    )
    ensure_topics(bootstrap.kafka(chosen), Topics(topic_prefix), 1)
    return chosen


@pytest.fixture
def world(settings: Settings) -> Iterator[World]:
    environment = {**os.environ, **to_environment(settings)}
    command = [sys.executable, "-m", "delivery"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as program:
        try:
            deadline = time.monotonic() + WAIT_SECONDS
            while health(settings.delivery.port) != 200:
                assert program.poll() is None, program.stderr and program.stderr.read()
                assert time.monotonic() < deadline, "delivery was not ready in time"
                time.sleep(0.02)
            yield World(settings, program)
        finally:
            program.kill()


def test_nobody_is_let_in_while_what_is_emitted_cannot_be_read(settings: Settings) -> None:
    """A client that was let in would wait for ever, or miss what comes until it can be read."""
    no_broker = {"SERVIOTICY_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    environment = {**os.environ, **to_environment(settings), **no_broker}
    port = settings.delivery.port
    with subprocess.Popen([sys.executable, "-m", "delivery"], env=environment) as program:
        try:
            deadline = time.monotonic() + WAIT_SECONDS
            while health(port) != 503:
                assert time.monotonic() < deadline, "delivery does not listen"
                time.sleep(0.02)
            with pytest.raises(InvalidStatus) as refused:
                connect(
                    f"ws://127.0.0.1:{port}/mine/streams/data/live?after=0",
                    additional_headers={"Authorization": "a token"},
                    proxy=None,
                )
        finally:
            program.kill()

    assert refused.value.response.status_code == 503
    assert int(refused.value.response.headers["Retry-After"]) > 0


def test_frames_are_the_updates_as_emitted_in_order(world: World) -> None:
    with world.watch() as one, world.watch() as other:
        world.emitted(*range(1, 501))
        frames = [one.recv(timeout=10) for _ in range(500)]

        assert frames == [a_document(at).decode() for at in range(1, 501)]
        assert received(other, 500) == list(range(1, 501))


def test_only_the_watched_stream_comes(world: World) -> None:
    with world.watch(name="open") as connection:
        world.emitted(1, name="mine")
        world.emitted(2, name="open")

        assert received(connection, 1) == [2]


def test_after_gives_first_what_is_stored_then_what_is_live(world: World) -> None:
    """More than a page, and the last of it emitted once more: nothing twice."""
    world.stored(*range(1, 1201))
    with world.watch("?after=100") as connection:
        first = received(connection, 1100)
        world.emitted(1199, 1200, 1201)

        assert first == list(range(101, 1201))
        assert received(connection, 1) == [1201]


def test_what_is_emitted_while_the_history_is_read_comes_once(world: World) -> None:
    """The pipeline stores, then emits; a watcher joins in the middle of it."""
    world.stored(*range(1, 3001))
    with world.watch("?after=0") as connection:
        for at in range(3001, 3301, 10):
            world.stored(*range(at, at + 10))
            world.emitted(*range(at, at + 10))

        assert received(connection, 3300) == list(range(1, 3301))
        world.emitted(3301)  # nothing came once more before it
        assert received(connection, 1) == [3301]


def test_the_token_may_stand_in_the_address(world: World) -> None:
    with world.watch(f"?access_token={world.ours}", additional_headers={}) as connection:
        world.emitted(5)

        assert received(connection, 1) == [5]


@pytest.mark.parametrize(
    ("name", "token", "status"),
    [
        ("mine", "", 403),
        ("mine", "wrong", 403),
        ("private", "ours", 401),
        ("nothing", "ours", 404),
    ],
)
def test_strangers_are_refused_before_the_upgrade(
    world: World, name: str, token: str, status: int
) -> None:
    headers = {"Authorization": world.ours if token == "ours" else token} if token else {}
    with pytest.raises(InvalidStatus) as refusal:
        world.watch(name=name, additional_headers=headers)

    body = json.loads(refusal.value.response.body)
    assert refusal.value.response.status_code == body["status"] == status
    assert set(body) == {"status", "message", "info"}


def test_a_client_that_does_not_read_is_closed_and_stalls_nobody(world: World) -> None:
    """Its buffer is bounded; the others get everything meanwhile."""
    slow = bare(world, "/mine/streams/data/live")
    assert b"101" in slow.recv(1024)
    with world.watch() as quick:
        for begin in range(0, 1000, 20):
            world.emitted(*range(begin, begin + 20), padding=30_000)
            assert received(quick, 20) == list(range(begin, begin + 20))

    slow.settimeout(10)
    got = b""
    while part := slow.recv(1 << 20):
        got = (got + part)[-4000:]
    slow.close()
    # Either the close frame reached it behind the last whole frame, or it was cut off.
    assert b"slower" in got or len(got) == 4000


UGLY = {
    "invalid UTF-8": b'{"v":"\xff"}',
    "a surrogate in UTF-8": b'{"v":"\xed\xa0\x80"}',
    "no object": b"null",
    "huge": b'{"v":"' + b"x" * 1_900_000 + b'"}',
}


@pytest.mark.parametrize("update", UGLY.values(), ids=UGLY)
def test_an_ugly_update_costs_nobody_a_frame(world: World, update: bytes) -> None:
    """One tenant's, in the real topic; a socket of another misses nothing."""
    envelope = b'{"service_object":"open","stream":"data","tenant":2,"version":1,"timestamp":1,'
    with world.watch() as other, world.watch(name="open"):
        for at in (1, 2, 3):
            world.produced(envelope + b'"update":' + update + b"}")
            world.emitted(at)

        assert received(other, 3) == [1, 2, 3]


UNREADABLE = {
    "half a surrogate pair, escaped": rb'{"v":"\ud800"}',
    "nothing": b"",
    "cut off": b'{"v":',
    "deep": b"[" * 100_000 + b"]" * 100_000,
}


@pytest.mark.parametrize("update", UNREADABLE.values(), ids=UNREADABLE)
def test_a_record_that_cannot_be_read_costs_nobody_a_frame(world: World, update: bytes) -> None:
    """It is skipped; the reader goes on, for every tenant."""
    envelope = b'{"service_object":"open","stream":"data","tenant":2,"version":1,"timestamp":1,'
    with world.watch() as other:
        for at in (1, 2, 3):
            world.produced(envelope + b'"update":' + update + b"}")
            world.emitted(at)

        assert received(other, 3) == [1, 2, 3]


def test_histories_that_nobody_reads_do_not_fill_the_memory(world: World) -> None:
    """Twenty sockets of a stream of 60 MB; a page of 500 updates each would be all of it."""
    for at in range(1, 61):
        world.stored(at, padding=1_000_000)
    with ExitStack() as clients:
        for _ in range(20):
            client = clients.enter_context(bare(world, "/mine/streams/data/live?after=0"))
            assert b"101" in client.recv(12)
        reader = clients.enter_context(world.watch("?after=0", max_size=None))

        assert received(reader, 60) == list(range(1, 61))
        # A page of one large update each, a few in the making, and the program itself.
        assert world.most_memory() < 250_000_000


def test_an_address_that_is_none_is_the_clients_mistake(world: World) -> None:
    with bare(world, "//[/x") as client:
        assert client.recv(12) == b"HTTP/1.1 400"


def test_the_program_ends_though_a_client_does_not_listen(world: World) -> None:
    for at in range(1, 21):
        world.stored(at, padding=1_000_000)
    with bare(world, "/mine/streams/data/live?after=0") as client:
        assert b"101" in client.recv(12)
        world.program.send_signal(signal.SIGTERM)

        assert world.program.wait(timeout=WAIT_SECONDS) == 0


def test_others_have_to_ask_again_when_a_document_has_changed(world: World) -> None:
    """It may be private from that version on; its owner watches on."""
    with world.watch() as own, world.watch(name="open") as foreign:
        world.emitted(1, name="open")
        assert received(foreign, 1) == [1]

        world.emitted(2, name="open", version=2)
        world.emitted(2, version=2)

        with pytest.raises(ConnectionClosed) as end:
            foreign.recv(timeout=10)
        assert end.value.rcvd is not None
        assert end.value.rcvd.code == 1013
        assert received(own, 1) == [2]


def test_what_clients_say_is_ignored_unless_it_is_large(world: World) -> None:
    with world.watch() as connection:
        connection.send("hello" * 10)
        world.emitted(1)
        assert received(connection, 1) == [1]

        connection.send("x" * 10_000)
        with pytest.raises(ConnectionClosed) as end:
            connection.recv(timeout=10)
        assert end.value.rcvd is not None
        assert end.value.rcvd.code == 1009


def test_sigterm_closes_sockets_with_going_away(world: World) -> None:
    with world.watch() as connection:
        world.program.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed) as end:
            connection.recv(timeout=10)

        assert end.value.rcvd is not None
        assert end.value.rcvd.code == 1001
        assert world.program.wait(timeout=WAIT_SECONDS) == 0


def test_tokens_are_not_logged(world: World) -> None:
    with world.watch(f"?access_token={world.ours}", additional_headers={}):
        pass
    with pytest.raises(InvalidStatus):
        world.watch("?access_token=not-a-token-of-anybody", additional_headers={})
    world.program.send_signal(signal.SIGTERM)
    assert world.program.stderr is not None
    written = world.program.stderr.read().decode()

    assert world.ours not in written
    assert "not-a-token-of-anybody" not in written


def test_a_follower_goes_on_where_a_killed_program_left_it(
    world: World, settings: Settings
) -> None:
    """What `servioticy tail` and the demonstration rely on."""
    follower = Follower(world.url, StreamRef("mine", "data"), world.ours, after=0)
    updates: Callable[[], str] = follower.updates().__next__
    world.stored(1, 2)
    assert [json.loads(updates())["lastUpdate"] for _ in range(2)] == [1, 2]

    world.program.kill()
    world.program.wait()
    world.stored(3)
    environment = {**os.environ, **to_environment(settings)}
    with subprocess.Popen([sys.executable, "-m", "delivery"], env=environment) as again:
        try:
            assert json.loads(updates())["lastUpdate"] == 3
        finally:
            again.kill()


def test_a_socket_ends_when_its_token_is_revoked_or_its_stream_made_private(world: World) -> None:
    """Postgres tells of it; the other sockets stay."""
    database = bootstrap.connect(world.settings)
    with world.watch() as own, world.watch(name="open") as foreign:
        database.rows("UPDATE service_objects SET public = false WHERE id = 'open'")
        with pytest.raises(ConnectionClosed) as private:
            foreign.recv(timeout=WAIT_SECONDS)
        world.emitted(1)
        assert received(own, 1) == [1]
        database.rows("UPDATE tokens SET revoked_at = now()")
        with pytest.raises(ConnectionClosed) as revoked:
            own.recv(timeout=WAIT_SECONDS)

    for each in (private, revoked):
        assert each.value.rcvd is not None
        assert each.value.rcvd.code == 1008
