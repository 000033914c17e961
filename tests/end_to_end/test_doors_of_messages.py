"""Each way into delivery by message that acts or names a device, for everybody who may not.

What was refused has changed nothing: the REST API behind it is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from doors import IN, OUT, SECONDS, Doors
from mqtt_client import MqttClient
from stomp_client import StompClient
from waiting import until

from servioticy.domain.model import StreamRef


class Mqtt:
    """Publishes by MQTT 5, whose acknowledgements say how it went."""

    name = "mqtt"

    def __init__(self, doors: Doors, token: str) -> None:
        self._client = MqttClient(doors.platform.mqtt_port, token or None, version=5)

    @property
    def is_in(self) -> bool:
        return self._client.refusal is None

    def publish(self, topic: str, payload: bytes) -> bool:
        """Whether it was taken."""
        return not self._client.acknowledged(self._client.publish(topic, payload, 1)).is_failure

    def subscribe(self, topic: str) -> bool:
        return self._client.subscribe(topic, 1)

    def received(self) -> list[bytes]:
        """What has come until now: a subscription is answered after it."""
        self._client.subscribe("errors")
        return [each.payload for each in self._client.messages]

    def close(self) -> None:
        self._client.close()


class Stomp:
    """Publishes by STOMP: a refusal is an ERROR, and the end."""

    name = "stomp"

    def __init__(self, doors: Doors, token: str) -> None:
        self._client = StompClient(doors.platform.mqtt_port, token)
        self._got: list[bytes] = []
        self._number = 0
        self._is_refused = False

    @property
    def is_in(self) -> bool:
        return self._client.welcome.command == "CONNECTED"

    def publish(self, topic: str, payload: bytes) -> bool:
        return self._done("SEND", {"destination": f"/topic/{topic}"}, payload)

    def subscribe(self, topic: str) -> bool:
        return self._done("SUBSCRIBE", {"destination": f"/topic/{topic}"})

    def received(self) -> list[bytes]:
        if not self._is_refused:  # else it has ended
            self.subscribe("errors")
        return self._got

    def _done(self, command: str, headers: dict[str, str], body: bytes = b"") -> bool:
        self._number += 1
        number = str(self._number)
        self._client.send(command, {"id": number, **headers, "receipt": number}, body)
        while True:
            frame = self._client.receive()
            if frame.command != "MESSAGE":
                self._is_refused = frame.command != "RECEIPT"
                return not self._is_refused
            self._got.append(frame.body)

    def close(self) -> None:
        self._client.close()


Protocol = type[Mqtt] | type[Stomp]
BOTH = pytest.mark.parametrize("protocol", [Mqtt, Stomp], ids=["mqtt", "stomp"])


def published(doors: Doors, protocol: Protocol, token: str, topic: str, payload: bytes) -> str:
    client = protocol(doors, token)
    try:
        if not client.is_in:
            return "not let in"
        return IN if client.publish(topic, payload) else "refused"
    finally:
        client.close()


LET_IN = {"another tenant", "of another object", "without the right", "nobody"}
"""A client that says nothing of who it is is nobody until it does; and may do nothing."""


def expected(who: str) -> str:
    if who == "the owner":
        return IN
    return "refused" if who in LET_IN else "not let in"


@BOTH
def test_nobody_else_sends_an_update(doors: Doors, protocol: Protocol) -> None:
    before = len(doors.platform.updates(StreamRef(doors.so, "data")))
    topic = f"updates/{doors.so}/data"
    found = {
        who: published(doors, protocol, token, topic, doors.update())
        for who, token in doors.tokens.items()
    }

    assert found == {who: expected(who) for who in found}
    assert len(doors.platform.updates(StreamRef(doors.so, "data"))) == before + 1


@BOTH
def test_nobody_else_speaks_for_a_device(doors: Doors, protocol: Protocol) -> None:
    id_ = doors.actuation()
    topic = f"{doors.so}/actuations/{id_}"
    tokens = {who: each for who, each in doors.tokens.items() if who != "the owner"}
    found = {
        who: published(doors, protocol, token, topic, f"done: {who}".encode())
        for who, token in tokens.items()
    }
    path = f"/{doors.so}/actuations/{id_}"
    assert doors.asked("GET", path)["status"] == "Submitted"

    owner = published(doors, protocol, doors.tokens["the owner"], topic, b"done: it is me")

    assert found == {who: expected(who) for who in found}
    assert owner == IN
    assert doors.asked("GET", path)["status"] == "done: it is me"


@BOTH
def test_a_request_by_message_is_worth_what_its_tokens_are(
    doors: Doors, protocol: Protocol
) -> None:
    """That in the topic says whose the connection is, that in the request what may be done."""
    path, before = f"/{doors.so}/streams/data", doors.made
    stored = len(doors.platform.updates(StreamRef(doors.so, "data")))
    owner = doors.tokens["the owner"]
    in_topic, in_request = {}, {}
    for who, token in doors.tokens.items():
        meta = {"method": "PUT", "url": path, "messageId": who}

        def request(authorization: str, meta: Any = meta) -> bytes:
            body = json.loads(doors.update())
            return json.dumps(
                {"meta": meta | {"authorization": authorization}, "body": body}
            ).encode()

        if who != "the owner":
            # With the token of another one in the topic: that of nobody is not asked further.
            first = token or "0" * 43
            in_topic[who] = published(doors, protocol, "", f"{first}/from", request(token))
        client = protocol(doors, owner)
        try:
            assert client.subscribe(f"{owner}/to")
            client.publish(f"{owner}/from", request(token))
            until(client.received, SECONDS)
            (answer,) = client.received()
            in_request[who] = json.loads(answer)["meta"]["status"]
        finally:
            client.close()

    assert doors.made == before + 2 * len(doors.tokens) - 1
    refused = {"nobody", "forged", "revoked", "expired"}
    assert {who for who, each in in_topic.items() if each != IN} == refused
    assert in_request == {
        who: {"the owner": 202, "another tenant": 401}.get(who, 403) for who in doors.tokens
    }
    assert len(doors.platform.updates(StreamRef(doors.so, "data"))) == stored + 1


@BOTH
def test_another_tenants_token_in_a_topic_is_refused(doors: Doors, protocol: Protocol) -> None:
    """A connection is one tenant's; what it knows of another's tokens is no use to it."""
    owner, theirs = doors.tokens["the owner"], doors.tokens["another tenant"]
    request = {"meta": {"authorization": owner, "method": "GET", "url": f"/{doors.so}"}}

    found = [
        published(doors, protocol, theirs, f"{owner}/from", json.dumps(request).encode()),
        published(doors, protocol, owner, f"{theirs}/from", json.dumps(request).encode()),
    ]

    assert found == ["refused"] * 2


@BOTH
def test_what_is_sent_to_a_topic_comes_to_who_may_have_it(
    doors: Doors, protocol: Protocol
) -> None:
    """Actuations, and what a subscription delivers: to its tenant, by a token that is for it."""
    topics = (f"{doors.so}/actions", f"{OUT}/#" if protocol is Mqtt else f"{OUT}")
    clients = {}
    try:
        for who, token in doors.tokens.items():
            client = clients[who] = protocol(doors, token)
            if client.is_in:
                for topic in topics:
                    if not client.subscribe(topic):
                        break
        id_ = doors.actuation()
        doors.platform.put(StreamRef(doors.so, "data"), 10**9 + doors.made, v=1)
        doors.made += 1

        def got() -> bool:
            came = b" ".join(clients["the owner"].received())
            return id_.encode() in came and b"lastUpdate" in came

        until(got, SECONDS)
        others = {
            who: client.received()
            for who, client in clients.items()
            if who != "the owner" and client.is_in
        }
    finally:
        for client in clients.values():
            client.close()

    assert "another tenant" in others
    assert set(map(tuple, others.values())) == {()}


# What is open when its token ends


@pytest.fixture
def ending(
    doors: Doors, request: pytest.FixtureRequest
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """A token of the owner, and what ends it."""
    if request.param == "revoked":
        token, id_ = doors.token()
        yield token, lambda: doors.asked("DELETE", f"/tokens/{id_}")
    else:
        token, _ = doors.token(expiresIn=5)
        yield token, lambda: None


@pytest.mark.parametrize("ending", ["revoked", "expired"], indirect=True)
def test_an_open_session_ends_with_its_token(
    doors: Doors, ending: tuple[str, Callable[[], Any]]
) -> None:
    """It could publish with it, and nothing of what it publishes afterwards is taken."""
    token, end = ending
    topic = f"updates/{doors.so}/data"
    with MqttClient(doors.platform.mqtt_port, token, version=5) as mqtt:
        stomp = StompClient(doors.platform.mqtt_port, token)
        assert mqtt.subscribe(topic)
        assert not mqtt.acknowledged(mqtt.publish(topic, doors.update(), 1)).is_failure
        stored = len(doors.platform.updates(StreamRef(doors.so, "data")))

        end()

        assert mqtt.is_gone.wait(SECONDS)
        assert stomp.receive().command == "ERROR"
        stomp.close()
    for protocol in (Mqtt, Stomp):
        assert published(doors, protocol, token, topic, doors.update()) == "not let in"
    assert len(doors.platform.updates(StreamRef(doors.so, "data"))) == stored
