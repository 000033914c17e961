"""Two processes of the API behind a balancer, over one Postgres, are one to a tenant's rates."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
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
        self._port = settings.api.port
        self._headers = {"Authorization": token, "Content-Type": "application/json"}
        self.program = subprocess.Popen(
            [sys.executable, "-P", "-m", "api"],
            env={**os.environ, **to_environment(settings)},
            stdin=subprocess.DEVNULL,
        )

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Return status and body; 0 where nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request(method, path, body, self._headers)
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


def test_what_one_lets_in_is_missing_at_the_other_which_is_alone_when_it_is_killed(
    settings: Settings, processes: list[Process]
) -> None:
    """Batches of many seconds' quota at one; to the other comes next to nothing."""
    flooded, other = processes
    for each in processes:
        until(lambda each=each: each.ask("GET", "/private/health")[0] == 200, SECONDS)
    status, made = other.ask("POST", "/", DOCUMENT)
    assert status == 201, made
    path = f"/{json.loads(made)['id']}/streams/a"
    database = bootstrap.connect(settings)
    rates = PostgresRates(database)
    until(lambda: rates.processes() == 2, SECONDS)
    numbers = iter(range(1, 1_000_000))

    def updates(count: int) -> list[dict[str, object]]:
        values = {"x": {"current-value": 1}}
        return [{"channels": values, "lastUpdate": next(numbers)} for _ in range(count)]

    def send() -> tuple[int, bytes]:
        return other.ask("PUT", path, json.dumps(updates(1)[0]).encode())

    def is_missing() -> bool:
        batch = json.dumps(updates(20 * QUOTA)).encode()
        flooded.ask("POST", f"{path}/updates", batch)
        return send()[0] == 429

    until(is_missing, SECONDS)
    status, answer = send()
    assert (status, json.loads(answer)["quota"]["name"]) == (429, "updates")
    assert json.loads(answer)["quota"]["limit"] == QUOTA

    flooded.kill()
    until(lambda: rates.processes() == 1, SECONDS)
    PostgresQuotas(database).give("acme", "updates", 100 * QUOTA)
    until(lambda: send()[0] == 202, SECONDS)
    database.close()
