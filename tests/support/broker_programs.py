"""Processes of the broker, on their own servers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.delivery_program import WAIT_SECONDS

from delivery.serving import ALIVE_FILE
from servioticy import bootstrap
from servioticy.settings import Settings, to_environment
from servioticy.storage.cursors import Deliverer


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


def claimed(settings: Settings) -> list[int]:
    """How many processes are there, and how many have the topics of durable subscriptions."""
    sql = """SELECT count(*) FILTER (WHERE classid::bigint = %(processes)s),
                    count(*) FILTER (WHERE classid::bigint = %(slots)s)
               FROM pg_locks
              WHERE locktype = 'advisory' AND objsubid = 2 AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
    (row,) = bootstrap.connect(settings).rows(sql, Deliverer.BROKER.value._asdict())
    return [*row]
