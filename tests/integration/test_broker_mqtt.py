"""MQTT with a real client: what is published reaches the API, what is emitted the client."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
from support.mqtt_client import MqttClient
from support.running_broker import RunningBroker, an_update

from servioticy.ports.history import VersionedUpdate

ALICE, BOB = "token-1", "token-2"
ACCEPTED = (202, b"")


@pytest.fixture(params=[4, 5])
def alice(broker: RunningBroker, request: pytest.FixtureRequest) -> Iterator[MqttClient]:
    with MqttClient(broker.port, ALICE, version=request.param) as client:
        yield client


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_an_update_that_is_published_is_put(
    broker: RunningBroker, alice: MqttClient, qos: int
) -> None:
    """The bridge of the original's library publishes with quality of service 2."""
    number = alice.publish("updates/pump/flow", an_update(7), qos)
    alice.acknowledged(number)
    alice.subscribe("updates/pump/flow")  # answered after what came before, whatever its quality

    while not broker.api.asked:
        pass
    assert broker.api.asked == [("PUT", "/pump/streams/flow", ALICE, an_update(7))]


def test_what_waits_is_sent_as_one_batch_in_its_order(
    broker: RunningBroker, alice: MqttClient
) -> None:
    numbers = [alice.publish("updates/pump/flow", an_update(at), 1) for at in range(200)]
    for number in numbers:
        alice.acknowledged(number)

    assert broker.api.updates == [an_update(at) for at in range(200)]
    assert len(broker.api.asked) < 200


def test_what_the_broker_has_not_got_is_not_acknowledged(
    broker: RunningBroker, alice: MqttClient
) -> None:
    """An acknowledgement is a promise: it comes when the API has made it."""
    broker.api.answers = [(503, b"{}"), (429, b"{}"), ACCEPTED]

    alice.acknowledged(alice.publish("updates/pump/flow", an_update(1), 1))

    assert len(broker.api.asked) == 3


def test_what_is_refused_is_told(broker: RunningBroker) -> None:
    refused = (400, b'{"status":400,"message":"No channels"}')
    with MqttClient(broker.port, ALICE, version=5) as client:
        broker.api.answers = [refused]
        reason = client.acknowledged(client.publish("updates/pump/flow", b"{}", 1))
    with MqttClient(broker.port, ALICE, version=4) as client:
        client.subscribe("errors")
        broker.api.answers = [refused]
        client.acknowledged(client.publish("updates/pump/flow", b"{}", 1))
        ((_, told),) = client.received(1)

    assert reason.value == 0x99
    assert orjson.loads(told) == {
        "topic": "updates/pump/flow",
        "status": 400,
        "message": "No channels",
    }


def test_of_a_batch_each_update_has_its_own_answer(broker: RunningBroker) -> None:
    with MqttClient(broker.port, ALICE, version=5) as client:
        item = {"index": 1, "status": 404, "message": "unknown"}
        partly = (207, orjson.dumps({"accepted": 2, "refused": 1, "items": [item]}))
        broker.api.answers = [(503, b"{}"), ACCEPTED, partly]
        numbers = [client.publish("updates/pump/flow", an_update(at), 1) for at in range(4)]
        reasons = [client.acknowledged(each).value for each in numbers]

    assert reasons == [0, 0, 0x90, 0]


def test_a_watched_stream_begins_with_its_last_value(
    broker: RunningBroker, alice: MqttClient
) -> None:
    broker.stored.last = VersionedUpdate(3, an_update(3), 1)
    assert alice.subscribe("updates/pump/flow", 1)
    alice.received(1)
    broker.emit(4)

    assert alice.received(2) == [
        ("updates/pump/flow", an_update(3)),
        ("updates/pump/flow", an_update(4)),
    ]
    assert [each.retain for each in alice.messages] == [True, False]


def test_the_bridge_answers_as_the_original_did(broker: RunningBroker, alice: MqttClient) -> None:
    alice.subscribe(f"{ALICE}/to")
    broker.api.answers = [(200, b'["id"]')]
    meta = {"authorization": ALICE, "method": "GET", "url": "/", "messageId": 17772}

    alice.publish(f"{ALICE}/from", orjson.dumps({"meta": meta}), 2)
    ((topic, reply),) = alice.received(1)

    assert topic == f"{ALICE}/to"
    assert orjson.loads(reply) == {"meta": {"messageId": 17772, "status": 200}, "body": ["id"]}
    assert broker.api.asked == [("GET", "/", ALICE, b"")]


def test_a_client_of_the_original_is_who_its_topics_say(broker: RunningBroker) -> None:
    """Its login is the same for all; the token is the first part of the topic."""
    with MqttClient(broker.port, "shines", user="compose") as client:
        assert not client.subscribe("updates/pump/flow")
        assert client.subscribe(f"{BOB}/pump/streams/flow/updates")
        assert client.subscribe("updates/pump/flow")
        assert not client.subscribe("+/to")


def test_a_wrong_password_is_refused(broker: RunningBroker) -> None:
    assert MqttClient(broker.port, "nobody's").refusal is not None
    assert MqttClient(broker.port, "nobody's", version=5).refusal is not None


def test_over_websocket(broker: RunningBroker) -> None:
    with MqttClient(broker.port, ALICE, transport="websockets") as client:
        client.acknowledged(client.publish("updates/pump/flow", an_update(1), 1))

    assert broker.api.updates == [an_update(1)]
