"""STOMP on the port of MQTT, over TCP and over WebSocket."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
from support.delivery_stores import a_capacity
from support.mqtt_client import MqttClient
from support.running_broker import RunningBroker, an_update
from support.stomp_client import StompClient

from broker.stomp_outlet import StompOutlet
from servioticy.domain.model import StreamRef

ALICE, BOB = "token-1", "token-2"
STREAM = "/topic/updates.pump.flow"


@pytest.fixture(params=[False, True], ids=["tcp", "websocket"])
def alice(broker: RunningBroker, request: pytest.FixtureRequest) -> Iterator[StompClient]:
    client = StompClient(broker.port, ALICE, over_websocket=request.param)
    assert (client.welcome.command, client.welcome.headers["version"]) == ("CONNECTED", "1.2")
    yield client
    client.close()


def test_a_receipt_says_that_an_update_is_safe(broker: RunningBroker, alice: StompClient) -> None:
    alice.send("SEND", {"destination": STREAM, "receipt": "r1"}, an_update(7))

    assert alice.receive().headers == {"receipt-id": "r1"}
    assert broker.log.came == [(StreamRef("pump", "flow"), an_update(7))]
    assert broker.api.asked == []


def test_without_it_a_refusal_is_told_as_an_error_of_the_client(
    broker: RunningBroker, alice: StompClient
) -> None:
    alice.send("SUBSCRIBE", {"id": "e", "destination": "/topic/errors"})
    alice.send("SEND", {"destination": STREAM}, b"{}")
    told = alice.receive()

    assert (told.command, told.headers["subscription"]) == ("MESSAGE", "e")
    assert orjson.loads(told.body)["status"] == 400


def test_with_it_a_refusal_ends_the_connection(broker: RunningBroker, alice: StompClient) -> None:
    destination = "/topic/updates.pump.nothing"
    alice.send("SEND", {"destination": destination, "receipt": "r"}, an_update(1))

    said = "This Service Object does not have this stream."
    assert alice.receive()[:2] == ("ERROR", {"message": said, "receipt-id": "r"})


def test_a_stream_is_watched(broker: RunningBroker, alice: StompClient) -> None:
    alice.send("SUBSCRIBE", {"id": "0", "destination": STREAM, "receipt": "s"})
    assert alice.receive().command == "RECEIPT"
    broker.emit(1)
    message = alice.receive()

    assert message.body == an_update(1)
    assert (message.headers["destination"], message.headers["subscription"]) == (STREAM, "0")


def test_the_bridge_of_the_original(broker: RunningBroker) -> None:
    """Its clients all have the same login."""
    client = StompClient(broker.port, "shines", login="compose", versions="1.1,1.0")
    client.send("SUBSCRIBE", {"id": "0", "destination": f"/topic/{ALICE}.to"})
    broker.api.answers = [(200, b"[]")]
    meta = {"authorization": ALICE, "method": "GET", "url": "/", "messageId": 5}
    client.send("SEND", {"destination": f"/topic/{ALICE}.from"}, orjson.dumps({"meta": meta}))
    reply = client.receive()

    assert reply.headers["destination"] == f"/topic/{ALICE}.to"
    assert orjson.loads(reply.body) == {"meta": {"messageId": 5, "status": 200}, "body": []}
    client.close()


def test_stomp_and_mqtt_share_topics(broker: RunningBroker, alice: StompClient) -> None:
    alice.send("SUBSCRIBE", {"id": "0", "destination": f"/topic/{ALICE}.*", "receipt": "s"})
    assert alice.receive().command == "RECEIPT"
    with MqttClient(broker.port, ALICE) as device:
        broker.api.answers = [(204, b"")]
        meta = {"authorization": ALICE, "method": "DELETE", "url": "/x", "messageId": 5}
        device.publish(f"{ALICE}/from", orjson.dumps({"meta": meta}), 1)

        assert orjson.loads(alice.receive().body)["meta"] == {"messageId": 5, "status": 204}


@pytest.mark.parametrize("destination", ["/queue/a", "/topic/*.to", "/topic/updates.private.flow"])
def test_what_is_not_to_be_had_is_an_error(alice: StompClient, destination: str) -> None:
    alice.send("SUBSCRIBE", {"id": "0", "destination": destination})

    assert alice.receive().command == "ERROR"


def test_a_wrong_passcode_is_an_error(broker: RunningBroker) -> None:
    assert StompClient(broker.port, "nobody's").welcome.command == "ERROR"


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ({"sockets": 1}, "a quota of 1 open sockets"),
        ({"connections": 1}, "Too many at once; try again"),
    ],
)
def test_who_finds_no_place_is_told_whose_places_are_taken(
    bounds: dict[str, int], told: str
) -> None:
    """The tenant's own, or all that the process has."""
    with RunningBroker(a_capacity(**bounds)) as broker:
        first = StompClient(broker.port, ALICE)
        second = StompClient(broker.port, ALICE)
        first.close()
        second.close()

    assert first.welcome.command == "CONNECTED"
    assert second.welcome.command == "ERROR"
    assert told in str(second.welcome)


def test_nothing_is_kept_of_subscriptions_that_have_ended_or_not_come_about(
    broker: RunningBroker, alice: StompClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client may make up as many names as it likes, one after the other."""
    outlets: list[StompOutlet] = []
    note = StompOutlet.forget
    monkeypatch.setattr(
        StompOutlet, "forget", lambda self, name: (outlets.append(self), note(self, name))[1]
    )
    for number in range(300):
        named = {"id": str(number), "destination": STREAM, "ack": "client"}
        alice.send("SUBSCRIBE", named)
        alice.send("UNSUBSCRIBE", named)
    alice.send("SUBSCRIBE", {"id": "r", "destination": STREAM, "receipt": "r"})
    assert alice.receive().headers == {"receipt-id": "r"}

    (outlet,) = set(outlets)
    assert (outlet.destinations, outlet.cumulative) == ({"r": STREAM}, set())
