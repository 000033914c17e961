"""The delivery program as a process, with a tenant that watches and updates to give it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Producer
from websockets.sync.client import ClientConnection, connect

from delivery.serving import ALIVE_FILE
from sandbox import argument_names
from servioticy import bootstrap
from servioticy.domain.emissions import emission
from servioticy.domain.records import EmittedRecord
from servioticy.domain.topics import MAX_MESSAGE_BYTES, Topics
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.messaging.admin import ensure_topics
from servioticy.messaging.emitter import Emitter
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.change_store import NewServiceObject
from servioticy.ports.cursors import Source, StoredCursor, write_cursor
from servioticy.settings import Settings, load, to_environment
from servioticy.storage.addresses import PostgresAddresses
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.cursors import Deliverer
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.queries import queries
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
            "live_callback_networks": "127.0.0.0/8",
        },
    )
    ensure_topics(bootstrap.kafka(chosen), Topics(topic_prefix), 1)
    return chosen


@pytest.fixture
def broker_beside(settings: Settings, tmp_path: Path) -> Iterator[None]:
    """The other program that delivers, for files that come to its doors, too."""
    alive = tmp_path / "broker.alive"
    environment = {**os.environ, **to_environment(settings), ALIVE_FILE: str(alive)}
    with subprocess.Popen([sys.executable, "-m", "broker"], env=environment) as broker:
        try:
            deadline = time.monotonic() + WAIT_SECONDS
            while not alive.exists():
                assert broker.poll() is None
                assert time.monotonic() < deadline, "the broker was not ready in time"
                time.sleep(0.02)
            yield
        finally:
            broker.kill()


@pytest.fixture
def world(settings: Settings) -> Iterator[World]:
    """The program, on its own servers."""
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


def subscribe(
    world: World,
    id_: str,
    source: Source | None = None,
    *,
    called: str | None = None,
    topic: str | None = None,
    token: str = "",
    name: str = "mine",
) -> None:
    """To the stream of `mine`, or to many; its updates are fetched, `called` with, or published
    below a topic. `token`: somebody else's who subscribes.
    """
    destination = called or topic
    told = {} if destination is None else {"destination": destination}
    callback = "pubsub" if topic else "http" if called else "pull"
    address = world.addresses.address(token or world.ours, name, "data")
    assert address is not None
    newest = bootstrap.connect(world.settings).rows("SELECT max(id) FROM streams")[0][0]
    bootstrap.connect(world.settings).rows(
        queries("subscriptions")["subscribe"],
        {
            "id": id_,
            "tenant": address.caller,
            "stream": None if source else address.stream_id,
            "service_object": source.service_object if source else None,
            "group": source.group if source else None,
            "document": json.dumps(told),
            "callback": callback,
            "destination": destination or "",
            "now": int(time.time() * 1000),
            "most": 100,
            "cursor": write_cursor(StoredCursor(newest=newest if source else None)),
            "expires_at": None,
        },
    )


def held(world: World) -> list[int]:
    """How many slots each process has."""
    sql = """SELECT pid FROM pg_locks
              WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = %(slots)s
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
    locks = Deliverer.DELIVERY.value._asdict()
    rows = bootstrap.connect(world.settings).rows(sql, locks)
    return sorted(Counter(pid for (pid,) in rows).values())


def until_held(world: World, *slots: int) -> None:
    """Wait until processes have so many each."""
    deadline = time.monotonic() + WAIT_SECONDS
    while held(world) != [*slots]:
        assert time.monotonic() < deadline, held(world)
        time.sleep(0.1)


@contextmanager
def again(settings: Settings) -> Iterator[subprocess.Popen[bytes]]:
    """The program, after it has been killed, or beside the first one."""
    environment = {**os.environ, **to_environment(settings)}
    with subprocess.Popen([sys.executable, "-m", "delivery"], env=environment) as program:
        try:
            deadline = time.monotonic() + WAIT_SECONDS
            while health(settings.delivery.port) != 200:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield program
        finally:
            program.kill()
