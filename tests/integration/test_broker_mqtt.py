"""MQTT with a real client: what is published reaches the log, what is emitted the client."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
import waiting
from support.mqtt_client import MqttClient
from support.played_ingest import AWAY
from support.running_broker import RunningBroker, an_update

from broker import outcomes
from servioticy.domain.model import StreamRef
from servioticy.ports.history import VersionedUpdate

ALICE, BOB = "token-1", "token-2"
NO_CHANNELS = b'{"lastUpdate":1}'
FLOW = StreamRef("pump", "flow")


@pytest.fixture(params=[4, 5])
def alice(broker: RunningBroker, request: pytest.FixtureRequest) -> Iterator[MqttClient]:
    with MqttClient(broker.port, ALICE, version=request.param) as client:
        yield client


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_an_update_that_is_published_is_in_the_log(
    broker: RunningBroker, alice: MqttClient, qos: int
) -> None:
    """The bridge of the original's library publishes with quality of service 2."""
    number = alice.publish("updates/pump/flow", an_update(7), qos)
    alice.acknowledged(number)
    alice.subscribe("updates/pump/flow")  # answered after what came before, whatever its quality

    waiting.until(lambda: broker.log.came)
    assert broker.log.came == [(FLOW, an_update(7))]
    assert broker.api.asked == []


def test_what_waits_is_sent_as_one_batch_in_its_order(
    broker: RunningBroker, alice: MqttClient
) -> None:
    numbers = [alice.publish("updates/pump/flow", an_update(at), 1) for at in range(200)]
    for number in numbers:
        alice.acknowledged(number)

    assert broker.log.updates == [an_update(at) for at in range(200)]
    assert broker.log.appended < 200
    assert broker.api.asked == []


def test_what_the_broker_has_not_got_is_not_acknowledged(
    broker: RunningBroker, alice: MqttClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An acknowledgement is a promise, as a 202 is."""
    monkeypatch.setattr(outcomes, "AWAY_SECONDS", 0.01)
    broker.log.faults = [AWAY, AWAY]

    alice.acknowledged(alice.publish("updates/pump/flow", an_update(1), 1))

    assert broker.log.appended == 3
    assert broker.log.updates == [an_update(1)]


def test_what_is_refused_is_told(broker: RunningBroker) -> None:
    with MqttClient(broker.port, ALICE, version=5) as client:
        reason = client.acknowledged(client.publish("updates/pump/flow", NO_CHANNELS, 1))
    with MqttClient(broker.port, ALICE, version=4) as client:
        client.subscribe("errors")
        client.acknowledged(client.publish("updates/pump/flow", NO_CHANNELS, 1))
        ((_, told),) = client.received(1)

    assert reason.value == 0x99
    assert orjson.loads(told) == {
        "topic": "updates/pump/flow",
        "status": 400,
        "message": "No channels",
    }


def test_of_a_batch_each_update_has_its_own_answer(broker: RunningBroker) -> None:
    with MqttClient(broker.port, ALICE, version=5) as client:
        streams = ("flow", "flow", "nothing", "flow")
        numbers = [
            client.publish(f"updates/pump/{each}", an_update(at), 1)
            for at, each in enumerate(streams)
        ]
        reasons = [client.acknowledged(each).value for each in numbers]

    assert reasons == [0, 0, 0x90, 0]
    assert broker.log.updates == [an_update(at) for at in (0, 1, 3)]


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

    assert broker.log.updates == [an_update(1)]
