"""A broker of the operator's own: what devices publish there, and what they get there.

The broker is not ours (rumqttd), and neither are the clients; the REST API is played.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
import waiting
from support.external_broker import PASSWORD, USER, VERSIONS, Cable, ExternalBroker
from support.mqtt_client import MqttClient
from support.running_broker import RunningBroker, an_update

from delivery.bridge import bridge as bridge_module
from delivery.bridge import complaints
from delivery.bridge.bridge import Bridges
from delivery.broker.client import Publication
from servioticy.domain.actuations import State
from servioticy.domain.model import ServiceObjectKey
from servioticy.settings.sections import Bridge

ALICE, BOB = "token-1", "token-2"
MOST_BYTES = 100_000
SECONDS = 20.0
numbers = itertools.count()


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with RunningBroker() as broker:
        yield broker


@pytest.fixture(scope="module")
def external(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExternalBroker]:
    found = ExternalBroker(tmp_path_factory.mktemp("external"))
    yield found
    found.kill()


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_module, "FIRST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(bridge_module, "LONGEST_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(bridge_module, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(complaints, "SECONDS", 0.1)


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
    def bridged(
        self,
        tenants: Mapping[str, str] | None = None,
        is_owner: Callable[[], bool] = lambda: True,
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
        bridges = Bridges(self.broker.broker, bridge, MOST_BYTES, is_owner)
        self.broker.call(bridges.start)
        try:
            yield bridges
        finally:
            self.broker.run(bridges.stop())

    @contextmanager
    def connected(self, tenants: Mapping[str, str] | None = None) -> Iterator[Bridges]:
        with self.bridged(tenants) as bridges:
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


@pytest.fixture(params=VERSIONS)
def world(
    running: RunningBroker, external: ExternalBroker, request: pytest.FixtureRequest
) -> Iterator[World]:
    running.api.asked.clear()
    running.api.answers.clear()
    found = World(running, external, request.param)
    yield found
    found.cable.close()


def test_an_update_that_is_published_there_is_put(world: World) -> None:
    with world.connected(), world.device() as device:
        device.acknowledged(device.publish(f"{world.prefix}/updates/pump/flow", an_update(7), 1))
        waiting.until(lambda: world.broker.api.asked)

    assert world.broker.api.asked == [("PUT", "/pump/streams/flow", ALICE, an_update(7))]


def test_what_the_log_has_not_is_not_acknowledged(world: World) -> None:
    """The session keeps it: it comes again over the next connection."""
    api = world.broker.api
    api.answers = [(503, b"{}")] * 3
    with world.connected() as bridges, world.device() as device:
        device.publish(f"{world.prefix}/updates/pump/flow", an_update(1), 1)
        waiting.until(lambda: api.asked)
        world.cable.cut()
        waiting.until(lambda: not bridges.connected)
        waiting.until(lambda: len(api.answers) < 3)
        world.cable.mend()
        waiting.until(lambda: not api.answers and len(api.asked) >= 4)

    assert {body for _, _, _, body in api.asked} == {an_update(1)}


def test_nothing_is_lost_though_connections_are_cut(world: World) -> None:
    topic, count = f"{world.prefix}/updates/pump/flow", 600
    with world.connected(), world.device() as device:
        for at in range(count):
            device.publish(topic, an_update(at), 1)
            if at % 200 == 100:
                waiting.until(lambda: world.broker.api.asked)
                world.cable.cut()
                world.cable.mend()
        waiting.until(lambda: len(set(world.broker.api.updates)) == count)

    assert set(world.broker.api.updates) == {an_update(at) for at in range(count)}


def test_it_goes_on_with_a_broker_that_was_killed(world: World) -> None:
    """What was to go out meanwhile goes when a client for it can be there again."""
    with world.connected() as bridges:
        world.cable.cut()
        world.external.kill()
        waiting.until(lambda: not bridges.connected)
        out, task = world.begin_to_give("news", "today")
        world.external.start()
        with world.device() as device:
            device.subscribe(f"{world.prefix}/#", 1)
            assert out == []
            world.cable.mend()
            assert device.received(1)[0] == (f"{world.prefix}/news/today", b"{}")
            waiting.until(lambda: out == [True])
            device.publish(f"{world.prefix}/updates/pump/flow", an_update(5), 1)
            waiting.until(lambda: an_update(5) in world.broker.api.updates)
        task.result(0)


def test_a_request_is_answered_where_it_came_from(world: World) -> None:
    """Answers to clients of our own are no business of that broker's."""
    request = {"meta": {"authorization": ALICE, "method": "GET", "url": "/", "messageId": 3}}
    payload = orjson.dumps(request)
    world.broker.api.answers = [(200, b'["a"]'), (200, b'["b"]')]
    with world.connected(), world.device() as device, MqttClient(world.broker.port, ALICE) as own:
        own.subscribe(f"{ALICE}/to")
        device.subscribe("#" if world.version == 5 else f"{world.prefix}/#", 1)
        own.publish(f"{ALICE}/from", payload, 1)
        own.received(1)
        device.publish(f"{world.prefix}/{ALICE}/from", payload, 1)
        answers = [each for each in device.received(2) if each[0].endswith("/to")]
        answer = answers[0] if answers else device.received(3)[-1]

    assert answer[0] == f"{world.prefix}/{ALICE}/to"
    assert orjson.loads(answer[1]) == {"meta": {"messageId": 3, "status": 200}, "body": ["b"]}
    assert [payload for _, payload in own.received(1)] == [
        b'{"meta":{"messageId":3,"status":200},"body":["a"]}'
    ]


def test_a_device_gets_what_it_is_asked_to_do_and_answers(world: World) -> None:
    name = f"lamp{world.prefix}"
    store, now = world.broker.actuations, int(time.time() * 1000)
    store.submit(ServiceObjectKey(1, name), f"{name}-1", now, 1_000_000)
    with world.device() as device:
        device.subscribe(f"{world.prefix}/{name}/actions", 1)
        with world.connected():
            device.received(1)
            store.submit(ServiceObjectKey(1, name), f"{name}-2", now, 1_000_000)
            received = device.received(2)
            waiting.until(lambda: store.kept[f"{name}-2"].state is State.DELIVERED)
            device.publish(f"{world.prefix}/{name}/actuations/{name}-1", b"done", 1)
            waiting.until(lambda: world.broker.api.asked)

    assert [orjson.loads(payload)["id"] for _, payload in received] == [f"{name}-1", f"{name}-2"]
    assert world.broker.api.asked == [("PUT", f"/{name}/actuations/{name}-1", ALICE, b"done")]


def test_what_goes_out_goes_below_the_prefix_of_its_tenant(world: World) -> None:
    """A tenant may choose the topic of a subscription, but not whose it is."""
    other = f"{world.prefix}b"
    with world.connected({world.prefix: ALICE, other: BOB}), world.device() as device:
        device.subscribe(f"{world.prefix}/#", 1)
        device.subscribe(f"{other}/#", 1)
        told = world.give(other, "updates", "pump", "flow")
        device.received(1)
        world.give("news", tenant=2)
        received = device.received(2)
        waiting.until(lambda: told == [True])

    topics = [f"{world.prefix}/{other}/updates/pump/flow", f"{other}/news"]
    assert [topic for topic, _ in received] == topics
    assert not world.broker.api.asked


def test_what_comes_in_is_done_in_the_name_of_its_prefix(world: World) -> None:
    """Though it shows another tenant's token."""
    other = f"{world.prefix}b"
    request = {"meta": {"authorization": BOB, "method": "GET", "url": "/"}}
    with world.connected({world.prefix: ALICE, other: BOB}), world.device() as device:
        device.subscribe(f"{world.prefix}/errors", 1)
        device.publish(f"{world.prefix}/{BOB}/from", orjson.dumps(request), 1)
        ((_, told),) = device.received(1)
        assert not world.broker.api.asked
        device.publish(f"{other}/updates/pump/flow", an_update(1), 1)
        waiting.until(lambda: world.broker.api.asked)

    assert orjson.loads(told)["status"] == 403
    assert [token for _, _, token, _ in world.broker.api.asked] == [BOB]


@pytest.mark.parametrize("version", [5])
def test_a_broker_of_one_tenant_needs_no_prefix(
    running: RunningBroker, external: ExternalBroker, version: int
) -> None:
    """The original's clients need not change there."""
    running.api.asked.clear()
    world = World(running, external, version)
    with world.connected({"": ALICE}), world.device() as device:
        device.subscribe("news", 1)
        device.publish("updates/pump/flow", an_update(3), 1)
        world.give("news")
        assert device.received(1) == [("news", b"{}")]
        waiting.until(lambda: running.api.asked)
    world.cable.close()

    assert running.api.asked == [("PUT", "/pump/streams/flow", ALICE, an_update(3))]


def test_quality_of_service_0_is_enough_for_who_says_so(world: World) -> None:
    with world.bridged(qos=0) as bridges, world.device() as device:
        waiting.until(lambda: bridges.connected)
        device.subscribe(f"{world.prefix}/news", 1)
        assert world.give("news") == [True]
        assert device.received(1) == [(f"{world.prefix}/news", b"{}")]
        device.publish(f"{world.prefix}/updates/pump/flow", an_update(3), 1)
        waiting.until(lambda: world.broker.api.asked)


def test_what_was_retained_is_not_taken_once_more(world: World) -> None:
    """It was said before, perhaps long ago; a request would be done with each connection."""
    topic = f"{world.prefix}/updates/pump/flow"
    with world.device() as device:
        number = device._client.publish(topic, an_update(1), 1, retain=True).mid
        device.acknowledged(number)
        with world.connected():
            device.publish(topic, an_update(2), 1)
            waiting.until(lambda: an_update(2) in world.broker.api.updates)

    assert world.broker.api.updates == [an_update(2)]


def test_what_is_refused_is_told_and_not_in_the_way(world: World) -> None:
    world.broker.api.answers = [(400, b'{"status":400,"message":"No channels"}')]
    topic = f"{world.prefix}/updates/pump/flow"
    with world.connected(), world.device() as device:
        device.subscribe(f"{world.prefix}/errors", 1)
        device.acknowledged(device.publish(topic, b"{}", 1))
        ((_, told),) = device.received(1)
        device.publish(topic, an_update(2), 1)
        waiting.until(lambda: an_update(2) in world.broker.api.updates)

    assert orjson.loads(told) == {
        "topic": "updates/pump/flow",
        "status": 400,
        "message": "No channels",
    }


def test_what_is_too_large_costs_no_memory_and_is_not_in_the_way(world: World) -> None:
    """A broker of MQTT 5 does not even send it."""
    topic = f"{world.prefix}/updates/pump/flow"
    with world.connected() as bridges, world.device() as device:
        device.publish(topic, an_update(1, MOST_BYTES), 1)
        device.publish(topic, an_update(2), 1)
        waiting.until(lambda: world.broker.api.updates)
        assert bridges.connected == 1

    assert world.broker.api.updates == [an_update(2)]


@pytest.mark.parametrize("version", [5])
def test_who_stands_by_is_not_connected(
    running: RunningBroker, external: ExternalBroker, version: int
) -> None:
    """Of several processes one delivers; another would get half of what comes."""
    world, owners = World(running, external, version), [False]
    with world.bridged(is_owner=lambda: owners[0]) as bridges:
        owners[0] = True
        waiting.until(lambda: bridges.connected)
        owners[0] = False
        waiting.until(lambda: not bridges.connected)
    world.cable.close()


def test_a_token_that_ends_costs_no_message(world: World) -> None:
    token = f"token-1-{world.prefix}"
    api = world.broker.api
    with world.connected({world.prefix: token}) as bridges, world.device() as device:
        world.broker.catalog.revoke(token)
        waiting.until(lambda: not bridges.connected)
        device.acknowledged(device.publish(f"{world.prefix}/updates/pump/flow", an_update(1), 1))
        assert not api.asked
        world.broker.catalog.revoked.clear()
        waiting.until(lambda: api.asked)

    assert api.asked == [("PUT", "/pump/streams/flow", token, an_update(1))]


def test_a_token_refused_in_the_middle_costs_no_message(world: World) -> None:
    """The API may know of it before we are told."""
    token, api = f"token-1-{world.prefix}", world.broker.api
    with world.connected({world.prefix: token}) as bridges, world.device() as device:
        world.broker.catalog.revoked.add(token)
        api.answers = [(403, b'{"status":403,"message":"Access was denied!"}')]
        device.publish(f"{world.prefix}/updates/pump/flow", an_update(1), 1)
        waiting.until(lambda: not bridges.connected)
        world.broker.catalog.revoked.clear()
        waiting.until(lambda: len(api.asked) == 2)

    assert {body for _, _, _, body in api.asked} == {an_update(1)}


def test_a_wrong_password_is_told_with_what_to_do(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "servioticy.delivery"),
        world.bridged(password="another secret"),
    ):
        waiting.until(lambda: any(hasattr(each, "why") for each in caplog.records))

    if world.version == 5:
        assert any("bridge_user with bridge_password" in str(vars(e)) for e in caplog.records)
    assert "another secret" not in str([vars(each) for each in caplog.records])


def test_a_token_of_nobody_is_told_and_the_others_are_connected(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    tenants = {world.prefix: ALICE, f"{world.prefix}x": "no token"}
    with caplog.at_level(logging.WARNING, "servioticy.delivery"), world.bridged(tenants) as found:
        waiting.until(lambda: "bridge_token_refused" in caplog.text)
        waiting.until(lambda: found.connected == 1)

    assert "no token" not in str([vars(each) for each in caplog.records])


@pytest.mark.parametrize("version", [5])
def test_tls_is_believed_only_with_who_vouches_for_it(
    running: RunningBroker,
    external: ExternalBroker,
    version: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder: Path | None = external.certificates
    if folder is None:
        pytest.skip("no openssl here to make a certificate")
    world, url = World(running, external, version), f"mqtts://127.0.0.1:{external.tls_port}"
    with caplog.at_level(logging.WARNING, "servioticy.delivery"), world.bridged(url=url) as found:
        waiting.until(lambda: any(hasattr(each, "why") for each in caplog.records))
        assert found.connected == 0
    with world.bridged(url=url, ca=str(folder / "certificate.pem")) as found:
        waiting.until(lambda: found.connected == 1)
    world.cable.close()

    assert any("bridge_ca" in getattr(each, "why", "") for each in caplog.records)
