"""`GET /metrics`: whoever asks gets it, and nobody keeps it from the others."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from running_platform import until
from scraped import get, samples

from servioticy.embedded import tcp_ports as ports
from servioticy.metrics import Registry, server
from servioticy.metrics.names import PROGRAM_STARTS, SANDBOX_FRAMES
from servioticy.metrics.server import Server
from servioticy.serving_metrics import serve
from servioticy.settings import Settings, changed
from servioticy.settings.places import (
    METRICS,
    METRICS_PROCESSES,
    metrics_ports,
    own_ports,
    platform,
)

SECONDS = 20.0


@pytest.fixture
def registry() -> Registry:
    return Registry(with_process=False)


@pytest.fixture
def served(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """Serves the metrics; the port."""
    monkeypatch.setattr(server, "NOTICES_SECONDS", 0.01)
    servers: list[Server] = []

    def start(port: int = 0) -> int:
        ports: list[int] = []
        found = threading.Event()

        def told(at: int) -> None:
            ports.append(at)
            found.set()

        servers.append(Server(registry, "127.0.0.1", [port], told=told))
        assert found.wait(SECONDS)
        return ports[0]

    yield start
    for each in servers:
        each.close()


def test_metrics_are_served(registry: Registry, served: Callable[..., int]) -> None:
    registry.counter(PROGRAM_STARTS).labels("api").inc()
    port = served()

    status, text = get(port)
    assert status == 200
    assert samples(text) == {'servioticy_program_starts_total{program="api"}': 1}
    assert get(port, "/metrics?x=1")[0] == 200


@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("POST", "/metrics"), ("GET", "/m")])
def test_there_is_nothing_else(served: Callable[..., int], method: str, path: str) -> None:
    assert get(served(), path, method) == (404, b"")


def test_a_metric_that_fails_is_told(
    registry: Registry, served: Callable[..., int], caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> float:
        raise RuntimeError("a bug")

    registry.observe(SANDBOX_FRAMES, fails)

    assert get(served())[0] == 500
    assert "metrics_failed" in caplog.messages


def test_who_says_nothing_is_hung_up_on(
    served: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One at a time are served: whoever is silent, or never ends, must not keep the others."""
    monkeypatch.setattr(server, "SECONDS", 0.2)
    port = served()
    with (
        socket.create_connection(("127.0.0.1", port)) as silent,
        socket.create_connection(("127.0.0.1", port)) as halfway,
        socket.create_connection(("127.0.0.1", port)) as endless,
    ):
        halfway.sendall(b"GET /metrics HTTP/1.1\r\n")
        endless.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * server.MAX_HEAD)

        assert get(port)[0] == 200
        for each in (silent, halfway):
            each.settimeout(SECONDS)
            assert each.recv(1) == b""


def test_a_taken_port_is_said_and_tried_again(
    registry: Registry, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be that of a program which is about to end."""
    monkeypatch.setattr(server, "RETRY_SECONDS", 0.02)
    caplog.set_level(logging.WARNING)
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    serving = Server(registry, "127.0.0.1", [port, ports.free()], setting="api_metrics_port")
    until(lambda: "metrics_not_served" in caplog.messages, SECONDS)
    taken.close()

    until(lambda: get(port)[0] == 200, SECONDS)
    assert caplog.messages.count("metrics_not_served") == 1
    told = caplog.records[0].__dict__
    assert (told["port"], told["setting"]) == (port, "api_metrics_port")
    serving.close()


def test_of_several_processes_each_has_a_port(
    registry: Registry,
    served: Callable[..., int],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who has the first keeps it: a process that went there later would look as if it was that."""
    monkeypatch.setattr(server, "RETRY_SECONDS", 0.02)
    monkeypatch.setattr(server, "BESIDE_SECONDS", 0.05)
    first, second = served(), served()
    third = ports.free()
    serving = Server(registry, "127.0.0.1", [first, second, third], setting="api_metrics_port")
    until(lambda: "metrics_elsewhere" in caplog.messages, SECONDS)

    until(lambda: get(third)[0] == 200, SECONDS)
    told = next(each for each in caplog.records if each.message == "metrics_elsewhere").__dict__
    assert (told["port"], told["at"], told["setting"]) == (first, third, "api_metrics_port")
    serving.close()


def test_a_process_tells_which_one_it_is(registry: Registry) -> None:
    """Of two platforms on one machine, too."""
    one = changed(Settings(), api_metrics_port=ports.free(), bootstrap_servers="a:1")
    other = changed(one, bootstrap_servers="b:1")
    serving = serve(registry, one, "api")
    assert serving is not None
    until(lambda: get(one.api.metrics_port)[0] == 200, SECONDS)

    ((name, value),) = samples(get(one.api.metrics_port)[1]).items()
    assert value == 1
    assert name.startswith("servioticy_process_info{")
    assert 'program="api"' in name and f'platform="{platform(one)}"' in name
    assert platform(one) != platform(other)
    serving.close()


def test_port_zero_is_none(registry: Registry) -> None:
    assert serve(registry, changed(Settings(), api_metrics_port=0), "api") is None


def test_no_port_of_a_process_is_anothers() -> None:
    every = [port for name in METRICS for port in metrics_ports(Settings(), name)]

    assert len(every) == len(set(every)) == len(METRICS) * METRICS_PROCESSES
    assert set(every) & own_ports(Settings()) == {metrics_ports(Settings(), n)[0] for n in METRICS}
    assert metrics_ports(changed(Settings(), api_metrics_port=65_400), "api") == [65_400, 65_500]
