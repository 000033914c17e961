"""Processes of the broker, on their own servers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.delivery_program import WAIT_SECONDS

from delivery.serving import ALIVE_FILE
from servioticy import bootstrap
from servioticy.domain.feed_slots import SLOTS, of_tenant, slot_of
from servioticy.settings import Settings, to_environment
from servioticy.storage.cursors import Deliverer
from servioticy.storage.tenants import PostgresTenants


class BrokerProgram:
    """One process."""

    def __init__(self, settings: Settings, process: subprocess.Popen[bytes]) -> None:
        self.settings = settings
        self.process = process
        self.port = settings.mqtt.port

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(WAIT_SECONDS)


@contextmanager
def a_broker(settings: Settings, folder: Path) -> Iterator[BrokerProgram]:
    """One that lets clients in."""
    alive = folder / f"broker-{settings.mqtt.port}.alive"
    alive.unlink(missing_ok=True)
    environment = {**os.environ, **to_environment(settings), ALIVE_FILE: str(alive)}
    with subprocess.Popen([sys.executable, "-m", "broker"], env=environment) as process:
        try:
            deadline = time.monotonic() + WAIT_SECONDS
            while not alive.exists():
                assert process.poll() is None
                assert time.monotonic() < deadline, "the broker was not ready in time"
                time.sleep(0.02)
            yield BrokerProgram(settings, process)
        finally:
            process.kill()


def shares(settings: Settings) -> list[int]:
    """How many slots of tenants each process has."""
    return sorted(Counter(_holders(settings).values()).values())


def holder(settings: Settings, token: str) -> int:
    """The port of the process that has the topics of durable subscriptions of a tenant."""
    tenant = PostgresTenants(bootstrap.connect(settings)).tenant_of(token)
    assert tenant is not None
    return _holders(settings)[slot_of(of_tenant(tenant), SLOTS)]


def _holders(settings: Settings) -> dict[int, int]:
    sql = """SELECT objid::bigint, application_name
               FROM pg_locks
               JOIN pg_stat_activity USING (pid)
              WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = %(slots)s
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
    rows = bootstrap.connect(settings).rows(sql, Deliverer.BROKER.value._asdict())
    return {slot: int(name.rpartition(":")[2]) for slot, name in rows}
