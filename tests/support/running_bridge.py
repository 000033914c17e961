"""Delivery's broker, another one, and bridges between the two, over a cable that can be cut."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager

import pytest
import waiting
from support.external_broker import PASSWORD, USER, VERSIONS, Cable, ExternalBroker
from support.mqtt_client import MqttClient
from support.running_broker import RunningBroker

from broker import outcomes, retries
from broker.bridge import bridge as bridge_module
from broker.bridge import complaints
from broker.bridge.bridge import Bridges
from broker.client import Publication
from servioticy.settings.outward import Bridge

ALICE, BOB = "token-1", "token-2"
MOST_BYTES = 100_000
SECONDS = 60.0
numbers = itertools.count()


class World:
    """Delivery, the broker, and a cable between the two."""

    def __init__(self, running: RunningBroker, external: ExternalBroker, version: int) -> None:
        self.broker = running
        self.external = external
        self.version = version
        self.port = external.ports[version]
        self.cable = Cable(self.port)
        self.prefix = f"plant{next(numbers)}"  # no test finds the session of another

    @contextmanager
    def bridges(
        self,
        tenants: Mapping[str, str] | None = None,
        is_ours: Callable[[int], bool] = lambda _tenant: True,
        **settings: object,
    ) -> Iterator[Bridges]:
        """Bridges that run; by default Alice has the prefix."""
        chosen = {
            "url": f"mqtt://127.0.0.1:{self.cable.port}",
            "user": USER,
            "password": PASSWORD,
            "tenants": tenants or {self.prefix: ALICE},
        }
        bridge = Bridge(**chosen | settings)  # type: ignore[arg-type]
        bridges = Bridges(self.broker.broker, bridge, MOST_BYTES, is_ours)
        self.broker.call(bridges.start)
        try:
            yield bridges
        finally:
            self.broker.run(bridges.stop())

    @contextmanager
    def connected(self, tenants: Mapping[str, str] | None = None) -> Iterator[Bridges]:
        with self.bridges(tenants) as bridges:
            waiting.until(lambda: bridges.connected == len(tenants or "1"))
            yield bridges

    def device(self, client: str = "") -> MqttClient:
        return MqttClient(self.port, PASSWORD, user="device", version=self.version, client=client)

    def give(self, *topic: str, tenant: int = 1) -> list[bool]:
        """Hand a message over as subscriptions do; what becomes of it is noted in the list."""
        told, giving = self.begin_to_give(*topic, tenant=tenant)
        giving.result(SECONDS)
        return told

    def begin_to_give(self, *topic: str, tenant: int = 1) -> tuple[list[bool], Future[None]]:
        told: list[bool] = []
        publication = Publication(tenant, topic, b"{}", None)
        work = self.broker.broker.exchange.hand_over(publication, told.append, lambda: True)
        return told, self.broker.begin(work)


@pytest.fixture(scope="module")
def delivery_here() -> Iterator[RunningBroker]:
    """Delivery's own broker, of one file of tests."""
    with RunningBroker() as broker:
        yield broker


@pytest.fixture(scope="module")
def external_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExternalBroker]:
    """One that is not ours, of one file of tests."""
    found = ExternalBroker(tmp_path_factory.mktemp("external"))
    yield found
    found.kill()


@pytest.fixture(params=VERSIONS)
def bridged(
    delivery_here: RunningBroker,
    external_broker: ExternalBroker,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    """A prefix of its own at the broker, over each version of MQTT; nobody waits for long."""
    monkeypatch.setattr(bridge_module, "FIRST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(bridge_module, "LONGEST_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(bridge_module, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(complaints, "SECONDS", 0.1)
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(retries, "LONGEST_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(outcomes, "AWAY_SECONDS", 0.05)
    delivery_here.forget()
    found = World(delivery_here, external_broker, request.param)
    yield found
    found.cable.close()
