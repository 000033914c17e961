"""The doors of delivery at which streams are watched."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import httpx
from support.delivery_program import World
from support.mqtt_client import MqttClient
from support.stomp_client import StompClient
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

MINE, NOTHING = "mine", "nothing"
IN = "in"
Door = Callable[[World, str, str], str]


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
