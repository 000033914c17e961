"""What hostile MQTT and STOMP clients do is contained."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import orjson
import pytest
import waiting
from support.delivery_stores import a_capacity
from support.mqtt_client import Bare, MqttClient, hello, publish, subscribe
from support.running_broker import RunningBroker, an_update

from broker.client import MAX_SUBSCRIPTIONS, MAX_UNSENT_BYTES
from broker.mqtt import MAX_INCOMPLETE

ALICE, BOB = "token-1", "token-2"
CONNECTED = b"\x20\x02\x00\x00"


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker() as broker:
        yield broker


@pytest.mark.parametrize(
    "sent",
    [
        b"\x10\xff\xff\xff\xff\x01",
        b"\x10\x80\x80\x40",
        b"\x30\x03\x00\x01x",
        b"\x10\x04\x00\x04MQ",
        b"\x10\x0c\x00\x04MQTT\x04\x01\x00\x00\x00\x00",
        b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x00\x00\x02\xff\xfe",
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /" + b"x" * 20_000,
        b"SEND\ndestination:/topic/a.b\n\n\0",
        b"CONNECT\n" + b"a:b\n" * 100,
        b"CONNECT\nno colon\n\n\0",
        b"CONNECT\naccept-version:9\n\n\0",
        b"C" * 100_000,
    ],
)
def test_what_is_no_beginning_ends_the_connection(broker: RunningBroker, sent: bytes) -> None:
    Bare(broker.port, sent).until_closed()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x30\xff\xff\xff\x7f",
        b"\x36\x05\x00\x01x\x00\x01",
        b"\x32\x05\x00\x01x\x00\x00",
        b"\x32\x03\x00\x09x",
        b"\x31\x05\x00\x03\xff\xfe\xfd",
        b"\x82\x02\x00\x01",
        b"\x80\x06\x00\x01\x00\x01x\x00",
        b"\x82\x06\x00\x01\x00\x01x\x03",
        b"\xa2\x02\x00\x01",
        b"\x10\x00",
        b"\xf0\x00",
        b"\x20\x02\x00\x00",
    ],
)
def test_a_malformed_packet_ends_its_connection_only(broker: RunningBroker, sent: bytes) -> None:
    with MqttClient(broker.port, ALICE, client="neighbour") as neighbour:
        hostile = Bare(broker.port, hello(ALICE))
        assert hostile.receive(4) == CONNECTED
        hostile.send(sent)
        hostile.until_closed()

        neighbour.acknowledged(neighbour.publish("updates/pump/flow", an_update(1), 1))


def test_messages_that_are_never_released_are_bounded(broker: RunningBroker) -> None:
    hostile = Bare(broker.port, hello(ALICE))
    hostile.send(*(publish("x/y", b"{}", 2, n) for n in range(1, MAX_INCOMPLETE + 2)))
    hostile.until_closed()


def test_a_message_of_quality_2_is_taken_once_until_it_is_released(broker: RunningBroker) -> None:
    broker.forget()
    client = Bare(broker.port, hello(ALICE))
    assert client.receive(4) == CONNECTED
    message = publish("updates/pump/flow", an_update(1), 2, 5)
    client.send(message)
    assert client.receive(4) == b"\x50\x02\x00\x05"
    client.send(message)
    assert client.receive(4) == b"\x50\x02\x00\x05"
    client.send(b"\x62\x02\x00\x05")
    assert client.receive(4) == b"\x70\x02\x00\x05"
    client.close()

    assert broker.log.updates == [an_update(1)]


@pytest.mark.parametrize("topic", ["#", "+/to", "+/pump/streams/flow/updates", "updates/#", "/x"])
def test_a_wildcard_does_not_stand_for_a_token(broker: RunningBroker, topic: str) -> None:
    with MqttClient(broker.port, ALICE) as client:
        assert not client.subscribe(topic)


def test_what_is_another_tenants_is_not_to_be_had(broker: RunningBroker) -> None:
    """Not by its topics, nor by its streams, nor by the answers that it gets."""
    with MqttClient(broker.port, ALICE, client="a") as alice:
        assert not alice.subscribe("updates/private/flow")
        assert alice.subscribe(f"{BOB}/to")  # as much hers as any topic: nobody publishes there
        with MqttClient(broker.port, BOB, client="b") as bob:
            assert bob.subscribe(f"{BOB}/to")
            meta = {"authorization": BOB, "method": "GET", "url": "/", "messageId": 1}
            bob.publish(f"{BOB}/from", orjson.dumps({"meta": meta}), 1)
            bob.received(1)
            refused = alice.publish(f"{BOB}/from", orjson.dumps({"meta": meta}), 1)
            alice.acknowledged(refused)
            assert len(bob.messages) == 1
        assert alice.messages == []


def test_a_client_is_replaced_by_one_of_its_own_tenant_only(broker: RunningBroker) -> None:
    first = MqttClient(broker.port, ALICE, client="pump-7")
    stranger = MqttClient(broker.port, BOB, client="pump-7")
    stranger.subscribe("errors")
    assert not first.is_gone.is_set()

    second = MqttClient(broker.port, ALICE, client="pump-7")
    assert first.is_gone.wait(20)
    for each in (first, stranger, second):
        each.close()


def test_subscriptions_are_bounded(broker: RunningBroker) -> None:
    with MqttClient(broker.port, ALICE) as client:
        granted = [client.subscribe(f"x/{n}") for n in range(MAX_SUBSCRIPTIONS + 1)]

    assert granted == [True] * MAX_SUBSCRIPTIONS + [False]


def test_a_foreign_stream_is_asked_for_again_when_it_has_changed(broker: RunningBroker) -> None:
    with MqttClient(broker.port, ALICE) as client:
        assert client.subscribe("updates/open/flow")
        broker.emit(1, name="open", version=2)
        assert client.is_gone.wait(20)
        assert client.messages == []


def test_connections_of_a_tenant_are_bounded() -> None:
    with RunningBroker(a_capacity(sockets=1)) as broker:
        first = MqttClient(broker.port, ALICE, client="1")
        assert MqttClient(broker.port, ALICE, client="2").refusal is not None
        assert MqttClient(broker.port, BOB, client="3").refusal is None
        first.close()
        waiting.until(lambda: broker.call(lambda: len(broker.broker.clients)) <= 1)
        assert MqttClient(broker.port, ALICE, client="4").refusal is None


@pytest.mark.parametrize("qos", [0, 1])
def test_a_client_that_does_not_take_what_comes_is_cut_off(
    broker: RunningBroker, qos: int
) -> None:
    """It reads nothing, or acknowledges nothing; another one gets everything meanwhile."""
    hostile = Bare(broker.port, hello(ALICE, name="hostile"), subscribe("updates/pump/flow", qos))
    assert hostile.receive(4 + 5)[:4] == CONNECTED
    with MqttClient(broker.port, BOB, client="reads") as other:
        assert other.subscribe("updates/pump/flow")
        for first in range(0, 400, 50):
            broker.emit(*range(first, first + 50), padding=32_768)
            other.received(first + 50)

        waiting.until(lambda: broker.call(lambda: len(broker.broker.clients)) == 1)
    assert broker.call(lambda: broker.hub.backlog.total) < MAX_UNSENT_BYTES
    hostile.close()


def test_a_client_whose_token_is_revoked_is_cut_off(broker: RunningBroker) -> None:
    client = MqttClient(broker.port, "token-7", client="revoked")
    other = MqttClient(broker.port, BOB, client="stays")
    broker.catalog.revoke("token-7")

    assert client.is_gone.wait(20)
    assert not other.is_gone.is_set()
    other.close()


PING = b"\xc0\0"


def test_a_flood_of_strangers_is_cut_and_holds_nobody_up(broker: RunningBroker) -> None:
    """Pings without a token, as many as fit: the connection may say so much, and no more."""
    flood = Bare(broker.port, hello())
    assert flood.receive(4) == CONNECTED
    with MqttClient(broker.port, ALICE, client="neighbour") as neighbour:
        with contextlib.suppress(OSError):
            for _ in range(100):
                flood.send(PING * 10_000)
        neighbour.acknowledged(neighbour.publish("updates/pump/flow", an_update(1), 1))
        flood.until_closed()


@pytest.mark.parametrize("beat", ["²,0", "9" * 5_000 + ",1", "1_0,٣", "-1,-1", "," * 1_000])
def test_no_heart_beat_breaks_anything(broker: RunningBroker, beat: str) -> None:
    said = f"CONNECT\naccept-version:1.2\npasscode:{ALICE}\nheart-beat:{beat}\n\n\0".encode()
    client = Bare(broker.port, said)

    assert client.receive(9) == b"CONNECTED"
    client.close()


def test_silent_strangers_make_room_for_each_other() -> None:
    """However many come: of the address that has most the oldest goes."""
    with RunningBroker(a_capacity(pending=10)) as broker:
        silent = [Bare(broker.port, hello()) for _ in range(40)]
        waiting.until(lambda: len(broker.hub.reception.pending) <= 10)
        for each in silent[:30]:
            each.until_closed()
        with MqttClient(broker.port, ALICE) as client:
            client.acknowledged(client.publish("updates/pump/flow", an_update(1), 1))
