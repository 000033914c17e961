"""Two processes of the API behind a balancer, over one Postgres, are one to a tenant's rates."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from waiting import until

from servioticy import bootstrap
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.settings import Settings, changed, to_environment
from servioticy.storage.quotas import PostgresQuotas
from servioticy.storage.rates import PostgresRates
from servioticy.storage.tenants import PostgresTenants

SECONDS = 120.0
QUOTA = 2
DOCUMENT = b'{"streams":{"a":{"channels":{"x":{"type":"number"}}}}}'


class Process:
    """One of the API, with a port of its own."""

    def __init__(self, settings: Settings, token: str) -> None:
        self._port, self._token = settings.api.port, token
        self.program = subprocess.Popen(
            [sys.executable, "-P", "-m", "api"],
            env={**os.environ, **to_environment(settings)},
            stdin=subprocess.DEVNULL,
        )

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Return status and body; 0 where nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request(method, path, body, {"Authorization": self._token})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError:
            return 0, b""
        finally:
            connection.close()

    def kill(self) -> None:
        self.program.kill()
        self.program.wait(SECONDS)


@pytest.fixture
def settings(dsn: str, real_kafka: EmbeddedKafka, topic_prefix: str) -> Settings:
    found = changed(
        Settings(),
        dsn=dsn,
        bootstrap_servers=real_kafka.bootstrap_servers,
        topic_prefix=topic_prefix,
    )
    bootstrap.make_topics(found)
    return found


@pytest.fixture
def processes(settings: Settings) -> Iterator[list[Process]]:
    database = bootstrap.connect(settings)
    token = PostgresTenants(database).create_tenant("acme")
    PostgresQuotas(database).give("acme", "updates", QUOTA)
    database.close()
    found = [
        Process(changed(settings, api_port=ports.free(), api_metrics_port=ports.free()), token)
        for _ in range(2)
    ]
    yield found
    for each in found:
        each.kill()


def test_what_one_lets_in_is_missing_at_the_other_until_it_is_killed(
    settings: Settings, processes: list[Process]
) -> None:
    """A flood at one; at the other so little that by itself it would never be refused."""
    flooded, other = processes
    for each in processes:
        until(lambda each=each: each.ask("GET", "/private/health")[0] == 200, SECONDS)
    status, made = other.ask("POST", "/", DOCUMENT)
    assert status == 201, made
    path = f"/{json.loads(made)['id']}/streams/a"
    database = bootstrap.connect(settings)
    rates = PostgresRates(database)
    until(lambda: rates.processes() == 2, SECONDS)
    numbers, stop = iter(range(1, 1_000_000)), threading.Event()

    def send(process: Process) -> int:
        update = b'{"channels":{"x":{"current-value":1}},"lastUpdate":%d}' % next(numbers)
        return process.ask("PUT", path, update)[0]

    def flood() -> None:
        while not stop.is_set():
            send(flooded)

    flooding = threading.Thread(target=flood, daemon=True)
    flooding.start()

    def is_refused_after_a_pause() -> bool:
        time.sleep(2 / QUOTA)  # as long as its own would take to be there again, and twice that
        return send(other) == 429

    try:
        until(is_refused_after_a_pause, SECONDS)
        flooded.kill()
    finally:
        stop.set()
        flooding.join(SECONDS)

    until(lambda: rates.processes() == 1, SECONDS)
    until(lambda: send(other) == 202, SECONDS)
    assert [is_refused_after_a_pause() for _ in range(5)] == [False] * 5
    database.close()
