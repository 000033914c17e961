"""Several processes of the API have one `/metrics`."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from running_platform import until
from scraped import scrape

from benchmarks import processes
from servioticy import bootstrap
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.settings import Settings, changed, to_environment

SECONDS = 300.0
HEALTH = 'servioticy_http_requests_total{method="GET",route="/private/health",status="200"}'


@pytest.fixture
def settings(dsn: str, real_kafka: EmbeddedKafka, topic_prefix: str) -> Settings:
    found = changed(
        Settings(),
        dsn=dsn,
        bootstrap_servers=real_kafka.bootstrap_servers,
        topic_prefix=topic_prefix,
        api_port=ports.free(),
        api_metrics_port=ports.free(),
        api_workers=2,
    )
    bootstrap.make_topics(found)
    return found


@pytest.fixture
def program(settings: Settings) -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen(
        [sys.executable, "-P", "-m", "api"],
        env={**os.environ, **to_environment(settings)},
        stdin=subprocess.DEVNULL,
    )
    yield started
    started.terminate()
    started.wait(SECONDS)


def ask(settings: Settings) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", settings.api.port, timeout=20)
    try:
        connection.request("GET", "/private/health")
        return connection.getresponse().status == 200
    finally:
        connection.close()


def answered(settings: Settings) -> float:
    return scrape(settings.api.metrics_port).get(HEALTH, 0)


def test_answers_of_all_processes_add_up(
    settings: Settings, program: subprocess.Popen[bytes]
) -> None:
    """Those of one that has ended, too: a counter must not go down."""
    until(lambda: ask(settings), SECONDS)
    until(lambda: answered(settings) > 0, SECONDS)
    workers = [each for each in processes.tree(program.pid) if each != program.pid]
    before = answered(settings)
    assert all(ask(settings) for _ in range(50))

    until(lambda: answered(settings) == before + 50, SECONDS)
    os.kill(workers[0], signal.SIGKILL)
    assert all(ask(settings) for _ in range(10))
    until(lambda: answered(settings) == before + 60, SECONDS)
