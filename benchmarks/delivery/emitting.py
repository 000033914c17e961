"""Updates emitted as the pipeline does, at a steady rate, of streams that nobody sends to."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from benchmarks.processes import processor_seconds
from servioticy import bootstrap
from servioticy.domain.emissions import emission
from servioticy.domain.records import EmittedRecord
from servioticy.ports.change_store import NewServiceObject
from servioticy.settings import Settings
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.tenants import PostgresTenants

STREAM = "s"
DOCUMENT = b'{"streams":{"s":{"channels":{"v":{"type":"number"}}}}}'
BURST_SECONDS = 0.02


class Emitted(NamedTuple):
    """A Service Object with one stream, and whose it is."""

    name: str
    tenant: int
    token: str


class Emitting:
    """Makes Service Objects, and emits for them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._emitter = bootstrap.emitter(settings, 0)
        self._last = 0

    def create(self, tenant: str, names: Sequence[str]) -> list[Emitted]:
        """Make these for a tenant of that name."""
        database = bootstrap.connect(self._settings, durable=False)
        tenants = PostgresTenants(database)
        token = tenants.create_tenant(tenant)
        own = partial(Emitted, tenant=tenants.tenant_of(token) or 0, token=token)
        for each in (made := [own(name) for name in names]):
            new = NewServiceObject(each.name, each.tenant, False, DOCUMENT, (STREAM,), (), 1)
            PostgresChangeStore(database).create(new, 1)
        return made

    def emit(self, these: Sequence[Emitted], rate: float, seconds: float) -> int:
        """Emit updates of these in turn, so many a second; return how many that were."""
        began, sent = time.perf_counter(), 0
        while sent < rate * seconds:
            due = int(min(seconds, time.perf_counter() - began + BURST_SECONDS) * rate)
            records = [self._record(these[(sent + n) % len(these)]) for n in range(due - sent)]
            sent = due
            if records:
                self._emitter.emit(self._last, [emission(each) for each in records])
                self._emitter.flush()
            time.sleep(BURST_SECONDS)
        return sent

    def _record(self, of: Emitted) -> EmittedRecord:
        self._last += 1
        document = b'{"channels":{"v":{"current-value":%d}},"lastUpdate":%d}'
        raw = msgspec.Raw(document % (self._last, self._last))
        return EmittedRecord(of.name, STREAM, of.tenant, 1, self._last, raw, (self._last, 0))


class Running(NamedTuple):
    """Processes to which clients connect."""

    ports: list[int]
    pids: list[int]

    def seconds(self) -> list[float]:
        """Return what each of them has taken of the processor."""
        return [*map(processor_seconds, self.pids)]
