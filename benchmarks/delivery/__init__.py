"""From an update's commit to its frame on 1, 100, 1,000 and 5,000 WebSockets of one process.

Postgres, broker and the delivery program run; the benchmark stores and emits each update as the
pipeline does. The clock starts when the transaction has committed, before the update is emitted,
and stops when a socket has read the frame. The sockets are of another process, which does next
to nothing with them; it shares the machine. At the end their token is revoked, and it is measured
when the first and the last of them has ended.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import msgspec

from benchmarks import ground, processes
from benchmarks.delivery.listeners import Heard, Wanted, listen
from servioticy import bootstrap
from servioticy.domain.emissions import emission
from servioticy.domain.records import EmittedRecord
from servioticy.domain.tokens import digest
from servioticy.embedded import tcp_ports as ports
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.change_store import NewServiceObject
from servioticy.settings import Settings, changed, to_environment
from servioticy.storage.addresses import PostgresAddresses
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.tenants import PostgresTenants
from servioticy.supervisor.program import Program
from servioticy.supervisor.supervisor import Supervisor

NAME, STREAM = "bench", "s"
DOCUMENT = b'{"streams":{"s":{"channels":{"v":{"type":"number"}}}}}'
READY_SECONDS = 30.0


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print p50, p90, p99 and the largest in milliseconds, and the program's memory."""
    parser = argparse.ArgumentParser("servioticy bench delivery")
    parser.add_argument("--subscribers", type=int, nargs="+", default=[1, 100, 1_000, 5_000])
    parser.add_argument("--rate", type=float, default=1.0, help="updates a second")
    parser.add_argument("--updates", type=int, default=10, help="measured, each time")
    options = parser.parse_args(arguments)
    most = max(options.subscribers)
    with ground.stores(changed(settings, live_sockets_per_tenant=most + 1)) as stores:
        found = changed(stores.settings, live_port=ports.free(), mqtt_port=0)
        source = _Source(found)
        with _program(found, stores) as pid:
            print(f"no sockets: {processes.memory_megabytes(pid):.0f} MB", flush=True)
            for count in options.subscribers:
                wanted = Wanted(found.delivery.port, NAME, STREAM, source.new_token(), count)
                measured = _measure(wanted, source, pid, options.rate, options.updates)
                print(_told(count, measured), flush=True)


class _Measured(NamedTuple):
    heard: list[float]
    """Milliseconds from each commit to each of its frames."""
    megabytes: float
    """The program's memory with all sockets open."""
    ended: list[float]
    """Milliseconds from the revocation to the end of each socket."""


def _told(count: int, measured: _Measured) -> str:
    heard, ended = measured.heard, measured.ended
    parts = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
    cuts = " ".join(f"{name} {ground.percentile(heard, part):.1f}" for name, part in parts)
    return (
        f"{count} sockets: {cuts} max {max(heard):.1f} ms ({len(heard)} frames), "
        f"{measured.megabytes:.0f} MB; revoked, ended after {min(ended):.0f} to "
        f"{max(ended):.0f} ms"
    )


class _Source:
    """A tenant with a stream, of which updates are stored and emitted."""

    def __init__(self, settings: Settings) -> None:
        self._database = database = bootstrap.connect(settings, durable=False)
        token = self.new_token()
        tenant = PostgresTenants(database).tenant_of(token) or 0
        new = NewServiceObject(NAME, tenant, False, DOCUMENT, (STREAM,), (), 1)
        PostgresChangeStore(database).create(new, 1)
        address = PostgresAddresses(database).address(token, NAME, STREAM)
        self._tenant, self._stream = tenant, (address.stream_id if address else 0) or 0
        self._store = bootstrap.partition_store(database)
        self._store.begin(0)
        self._emitter = bootstrap.emitter(settings, 0)
        self._offset = 0

    def new_token(self) -> str:
        """Return another token of the tenant."""
        return PostgresTenants(self._database).create_tenant("bench")

    def revoke(self, token: str) -> float:
        """Revoke a token; return when that was committed."""
        sql = "UPDATE tokens SET revoked_at = now() WHERE digest = %(digest)s"
        self._database.rows(sql, {"digest": digest(token)})
        return time.perf_counter()

    def send(self) -> tuple[int, float]:
        """Store and emit the next update; return its timestamp, and when it was committed."""
        at = self._offset
        document = b'{"channels":{"v":{"current-value":%d}},"lastUpdate":%d}' % (at, at)
        row = StoredUpdate(self._tenant, self._stream, at, document, 1, at, 0)
        self._store.store(Batch(0, at, at + 1, 0, [row]))
        self._offset += 1
        committed = time.perf_counter()
        record = EmittedRecord(NAME, STREAM, self._tenant, 1, at, msgspec.Raw(document), (at, 0))
        self._emitter.emit(self._offset, [emission(record)])
        self._emitter.flush()
        return at, committed


def _measure(wanted: Wanted, source: _Source, pid: int, rate: float, updates: int) -> _Measured:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    first, _ = source.send()
    last = first + updates
    process = spawn.Process(target=partial(listen, wanted, last, theirs), daemon=True)
    process.start()
    ours.recv()  # they are open; where they are not, the process ends, and this raises
    committed = {}
    began = time.perf_counter()
    for number in range(updates):
        pause = began + number / rate - time.perf_counter()
        if pause > 0:
            time.sleep(pause)
        at, committed_at = source.send()
        committed[at] = committed_at
    heard: Heard = ours.recv()
    megabytes = processes.memory_megabytes(pid)
    revoked = source.revoke(wanted.token)
    ended: list[float] = ours.recv()
    process.join()
    return _Measured(
        [(arrived - committed[at]) * 1000 for at, times in heard.items() for arrived in times],
        megabytes,
        [(each - revoked) * 1000 for each in ended],
    )


def program(settings: Settings, name: str) -> Program:
    """Return the delivery program, which is ready when it lets clients in."""
    return Program(
        name,
        [sys.executable, "-P", "-m", "delivery"],
        to_environment(settings),
        partial(_is_ready, settings.delivery.port),
        ready_seconds=READY_SECONDS,
    )


@contextmanager
def _program(settings: Settings, stores: ground.Stores) -> Iterator[int]:
    """The delivery program, from when it lets clients in; its process."""
    supervisor = Supervisor([program(settings, "delivery")], stores.folder)
    try:
        supervisor.start()
        yield supervisor.pids()["delivery"]
    finally:
        supervisor.stop()


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
