"""Actuations over MQTT and STOMP, with real clients: to devices, and back what they say."""

from __future__ import annotations

import itertools
import time

import orjson
import pytest
import waiting
from support.mqtt_client import MqttClient
from support.running_broker import RunningBroker
from support.stomp_client import StompClient

from servioticy.domain.actuations import State
from servioticy.domain.model import ServiceObjectKey

ALICE, BOB = "token-1", "token-2"
SECONDS = 60.0
numbers = itertools.count()


@pytest.fixture
def lamp(broker: RunningBroker) -> str:
    """A device that no other test has."""
    return f"lamp{next(numbers)}"


def submit(broker: RunningBroker, name: str, count: int = 1, tenant: int = 1) -> list[str]:
    """Ask a device for something so many times."""
    made = [f"{name}-{next(numbers):06d}" for _ in range(count)]
    for each in made:
        now = int(time.time() * 1000)
        broker.actuations.submit(ServiceObjectKey(tenant, name), each, now, 1_000_000)
    return made


def ids(received: list[tuple[str, bytes]]) -> list[str]:
    return [orjson.loads(payload)["id"] for _topic, payload in received]


def state_of(broker: RunningBroker, id_: str) -> State:
    return broker.actuations.kept[id_].state


@pytest.mark.parametrize("topic", ["{}/actions", "{}/#", "{}/+"])
def test_a_device_gets_what_waited_and_what_comes(
    broker: RunningBroker, lamp: str, topic: str
) -> None:
    """As the original wrote it, with an id in front."""
    before = submit(broker, lamp, 2)
    with MqttClient(broker.port, ALICE) as device:
        assert device.subscribe(topic.format(lamp), 1)
        device.received(2)
        later = submit(broker, lamp, 2)
        received = device.received(4)

    assert ids(received) == before + later
    assert {topic for topic, _ in received} == {f"{lamp}/actions"}
    message = orjson.loads(received[0][1])
    assert (message["description"], message["parameters"]) == ({"name": "blink"}, "")
    waiting.until(lambda: state_of(broker, later[1]) is State.DELIVERED, SECONDS)


def test_what_is_not_acknowledged_comes_again_in_order(broker: RunningBroker, lamp: str) -> None:
    made = submit(broker, lamp, 3)
    with MqttClient(broker.port, ALICE, manual_ack=True) as device:
        device.subscribe(f"{lamp}/actions", 1)
        device.received(3)
        device.acknowledge(device.messages[1])
        waiting.until(lambda: state_of(broker, made[1]) is State.DELIVERED, SECONDS)
        assert state_of(broker, made[0]) is State.SENT
    with MqttClient(broker.port, ALICE) as device:
        device.subscribe(f"{lamp}/actions", 1)
        received = device.received(2)

    assert ids(received) == [made[0], made[2]]


def test_nobody_else_gets_them(broker: RunningBroker, lamp: str) -> None:
    """Neither another tenant, nor who has a token that is for something else."""
    with MqttClient(broker.port, BOB) as other, MqttClient(broker.port, ALICE) as device:
        assert other.subscribe(f"{lamp}/actions", 1)
        assert device.subscribe(f"{lamp}/actions", 1)
        submit(broker, lamp)
        device.received(1)
        own = submit(broker, lamp, tenant=2)

        assert ids(other.received(1)) == own


def test_a_device_over_stomp(broker: RunningBroker, lamp: str) -> None:
    made = submit(broker, lamp)
    device = StompClient(broker.port, ALICE)
    topic = f"/topic/{lamp}.actions"
    device.send("SUBSCRIBE", {"id": "1", "destination": topic, "ack": "client-individual"})
    message = device.receive()

    assert (message.command, message.headers["destination"]) == ("MESSAGE", topic)
    assert orjson.loads(message.body)["id"] == made[0]
    assert state_of(broker, made[0]) is State.SENT
    device.send("ACK", {"id": message.headers["ack"]})
    waiting.until(lambda: state_of(broker, made[0]) is State.DELIVERED, SECONDS)
    device.close()


def test_the_originals_login_is_a_device_once_it_has_shown_a_token(
    broker: RunningBroker, lamp: str
) -> None:
    """By the first part of a topic, as its clients do; until then it is refused (differences)."""
    made = submit(broker, lamp)
    nobody = StompClient(broker.port, "shines", login="compose", versions="1.1,1.0")
    nobody.send("SUBSCRIBE", {"id": "1", "destination": f"/topic/{lamp}.actions"})
    assert nobody.receive().command == "ERROR"
    nobody.close()

    client = StompClient(broker.port, "shines", login="compose", versions="1.1,1.0")
    client.send("SUBSCRIBE", {"id": "0", "destination": f"/topic/{ALICE}.to"})
    client.send("SUBSCRIBE", {"id": "1", "destination": f"/topic/{lamp}.actions"})
    message = client.receive()

    assert (message.command, message.headers["subscription"]) == ("MESSAGE", "1")
    assert orjson.loads(message.body)["id"] == made[0]
    client.close()


def test_what_a_device_says_goes_to_the_api(broker: RunningBroker, lamp: str) -> None:
    with MqttClient(broker.port, ALICE) as device:
        device.acknowledged(device.publish(f"{lamp}/actuations/17", "done: é", 1))

    assert broker.api.asked == [
        ("PUT", f"/{lamp}/actuations/17", ALICE, "done: é".encode()),
    ]


def test_a_device_that_reads_nothing_delays_no_other(broker: RunningBroker, lamp: str) -> None:
    other = f"{lamp}b"
    with (
        MqttClient(broker.port, ALICE, manual_ack=True) as stuck,
        MqttClient(broker.port, ALICE) as device,
    ):
        stuck.subscribe(f"{lamp}/actions", 1)
        submit(broker, lamp, 100)
        stuck.received(1)
        device.subscribe(f"{other}/actions", 1)
        made = submit(broker, other, 50)

        assert ids(device.received(50)) == made
