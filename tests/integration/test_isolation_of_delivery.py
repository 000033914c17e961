"""The isolation run of delivery: each way in, for everybody who may not come that way.

The program itself, on a real Postgres as `servioticy_delivery`, and a real broker.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest
from integration.test_delivery_events import subscribe
from support.delivery_program import World, settings, world
from support.mqtt_client import MqttClient
from support.stomp_client import StompClient
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from servioticy import bootstrap
from servioticy.domain.tokens import digest, new_token
from servioticy.storage.roles import Role
from servioticy.storage.statements import PostgresStatements

__all__ = ["settings", "world"]

MINE, NOTHING = "mine", "nothing"
IN = "in"
Door = Callable[[World, str, str], str]


def a_token(world: World, **wanted: Any) -> str:
    """A token of the tenant `ours`."""
    address = world.addresses.address(world.ours, MINE, "data")
    assert address is not None
    token = new_token()
    api = bootstrap.connect(world.settings, Role.API)
    values: dict[str, Any] = {"service_object": None, "stream": None, "rights": None, **wanted}
    values |= {"id": uuid.uuid4().hex, "name": "n", "tenant": address.caller, "most": 99}
    made = PostgresStatements(api, "tokens").row(
        "make", digest=digest(token), expires=100, **values
    )
    api.close()
    assert made is not None
    return token


def ended(world: World, how: str) -> str:
    """A token that was good once."""
    token = a_token(world)
    database = bootstrap.connect(world.settings)
    database.rows(f"{how} WHERE digest = %(digest)s", {"digest": digest(token)})
    database.close()
    return token


IDENTITIES: Mapping[str, Callable[[World], str]] = {
    "another tenant": lambda world: world.theirs,
    "nobody": lambda _: "",
    "forged": lambda _: "x" * 43,
    "expired": lambda world: ended(world, "UPDATE tokens SET expires_at = now()"),
    "revoked": lambda world: ended(world, "DELETE FROM tokens"),
    "without the right": lambda world: a_token(world, rights=["read", "send", "admin"]),
}


def websocket(world: World, token: str, service_object: str) -> str:
    headers = {"Authorization": token} if token else {}
    try:
        with world.watch(name=service_object, additional_headers=headers):
            return IN
    except InvalidStatus as refused:
        return str(refused.response.status_code)


def asked(world: World, token: str, path: str) -> str:
    headers = {"Authorization": token} if token else {}
    url = world.url.replace("ws:", "http:") + path
    with httpx.stream("GET", url, headers=headers, timeout=20) as answer:
        return IN if answer.status_code == 200 else str(answer.status_code)


def events(world: World, token: str, service_object: str) -> str:
    return asked(world, token, f"/{service_object}/streams/data/events")


def updates(world: World, token: str, service_object: str) -> str:
    return asked(world, token, f"/subscriptions/{service_object}/updates?wait=0")


def position(world: World, token: str, service_object: str) -> str:
    return asked(world, token, f"/subscriptions/{service_object}/position")


def said(world: World, token: str, wanted: dict[str, str]) -> str:
    """What is answered to a subscription over the one socket for many."""
    headers = {"Authorization": token} if token else {}
    try:
        socket: ClientConnection
        with connect(f"{world.url}/live", additional_headers=headers, proxy=None) as socket:
            socket.send(json.dumps({"do": "subscribe", "id": "1", **wanted}))
            told = json.loads(socket.recv(timeout=20))
            return IN if told["is"] == "subscribed" else str(told["status"])
    except InvalidStatus as refused:
        return str(refused.response.status_code)


def live(world: World, token: str, service_object: str) -> str:
    return said(world, token, {"serviceObject": service_object, "stream": "data"})


def live_durable(world: World, token: str, service_object: str) -> str:
    return said(world, token, {"subscription": service_object})


def mqtt(world: World, token: str, service_object: str) -> str:
    with MqttClient(world.settings.mqtt.port, token or None) as client:
        if client.refusal:
            return "no"
        return IN if client.subscribe(f"updates/{service_object}/data") else "no"


def stomp(world: World, token: str, service_object: str) -> str:
    client = StompClient(world.settings.mqtt.port, token)
    try:
        if client.welcome.command != "CONNECTED":
            return "no"
        topic = f"/topic/updates.{service_object}.data"
        client.send("SUBSCRIBE", {"id": "0", "destination": topic, "receipt": "r"})
        return IN if client.receive().command == "RECEIPT" else "no"
    finally:
        client.close()


STREAMS: Mapping[str, Door] = {"websocket": websocket, "events": events, "live": live}
"""Where the original's clients are told what is another's from what is not there: 401, 404."""
OURS: Mapping[str, Door] = {
    "updates": updates,
    "position": position,
    "live durable": live_durable,
}
"""Durable subscriptions, named as the Service Object they are to, or as nothing."""
BROKER: Mapping[str, Door] = {"mqtt": mqtt, "stomp": stomp}

EXPECTED: dict[str, dict[str, tuple[str, str]]] = {
    **{door: {"another tenant": ("401", "404")} for door in STREAMS},
    # A tenant's own token without the right may learn which subscriptions its tenant has.
    **{
        door: {"another tenant": ("404", "404"), "without the right": ("403", "404")}
        for door in OURS
    },
    **{door: dict.fromkeys(IDENTITIES, ("no", "no")) for door in BROKER},
}
"""What is answered where the stream is another's, and where there is none; else 403 for both."""


def test_whoever_may_not_is_refused_at_every_door(world: World) -> None:
    """And whoever may comes in, so that it is not the door that is shut."""
    subscribe(world, MINE)
    tokens = {name: make(world) for name, make in IDENTITIES.items()}
    doors = {**STREAMS, **OURS, **BROKER}
    found = {
        (door, name): tuple(enter(world, token, each) for each in (MINE, NOTHING))
        for door, enter in doors.items()
        for name, token in tokens.items()
    }

    assert found == {
        (door, name): EXPECTED[door].get(name, ("403", "403")) for door, name in found
    }
    assert {door: enter(world, world.ours, MINE) for door, enter in doors.items()} == (
        dict.fromkeys(doors, IN)
    )


@pytest.mark.parametrize("stream", ["data", "else"])
def test_a_token_of_another_stream_is_refused_at_every_door(world: World, stream: str) -> None:
    subscribe(world, MINE)
    token = a_token(world, service_object="open" if stream == "data" else MINE, stream=stream)
    doors = {**STREAMS, **OURS, **BROKER}

    found = {door: enter(world, token, MINE) for door, enter in doors.items()}

    assert set(found.values()) <= {"403", "no"}, found
