"""Group D: what could fill delivery's loop: templates, parameters, subscriptions, and talk."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any

import orjson
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from benchmarks.attacks.attack import Attack, composite, document
from benchmarks.attacks.attacker import ELSEWHERE, Attacker, counted

LARGE = "x" * 900_000
ENTRIES = 100
TEMPLATES = 5
SOCKETS, EACH = 5, 1_000
RECORDS, READERS = 20_000, 200
CALLS = 200
STRANGERS = 50
PINGS = 5_000
PING = b"\x89\x80\0\0\0\0"
PERIOD_SECONDS = 1.0


# D1


def templates(number: int) -> dict[str, Any]:
    """Return a callback whose fifty header names and values are all of the update."""
    headers = {f"h{number}-{n}-{{$.}}": "{$.}" for n in range(50)}
    destination = f"http://receiver.invalid/{number}"
    return {"callback": "http", "destination": destination, "customFields": {"headers": headers}}


def subscribe(attacker: Attacker, service_object: str, wanted: dict[str, Any]) -> str:
    """Return the id of a new subscription to `s`; empty where it is refused."""
    path = f"/{service_object}/streams/s/subscriptions"
    status, body = attacker.request("POST", path, orjson.dumps(wanted))
    return str(orjson.loads(body)["id"]) if status == 201 else ""


def _templates(attacker: Attacker) -> str:
    device = attacker.create(document({}, "string"))
    for number in range(TEMPLATES):
        subscribe(attacker, device, templates(number))
    return device


def _large_updates(attacker: Attacker, device: str) -> None:
    for _ in attacker.every(PERIOD_SECONDS):
        attacker.put(device, LARGE)


# D2


def acting() -> dict[str, Any]:
    """Return a document whose composite asks for a hundred actions with all that it emits."""
    found = document({"c": composite("s=>'x'", "string")}, "string")
    entry = {"action": "a", "parameters": ["{$.}"] * 3}
    found["streams"]["c"]["actions"] = [entry] * ENTRIES
    return {**found, "actions": [{"name": "a", "timeout": 1}]}


def _acting(attacker: Attacker) -> str:
    return attacker.create(acting())


def _large_outputs(attacker: Attacker, service_object: str) -> None:
    """An update that is sent to the composite asks, too."""
    for number in attacker.every(PERIOD_SECONDS):
        update = {"channels": {"v": {"current-value": LARGE}}, "lastUpdate": number + 1}
        attacker.request("PUT", f"/{service_object}/streams/c", orjson.dumps(update))


# D3


def _live(attacker: Attacker) -> ClientConnection:
    url = f"ws://{attacker.place.host}:{attacker.place.settings.delivery.port}/live"
    headers = {"Authorization": attacker.place.token}
    return connect(url, additional_headers=headers, proxy=None, max_size=None)


@contextlib.contextmanager
def _counted(attacker: Attacker) -> Iterator[None]:
    try:
        yield
    except (WebSocketException, OSError) as error:
        attacker.got[type(error).__name__] += 1


def _device(attacker: Attacker) -> str:
    return attacker.create(document({}))


def _crowd(attacker: Attacker) -> tuple[str, list[ClientConnection]]:
    """Open sockets with a thousand subscriptions each."""
    device, sockets = _device(attacker), list[ClientConnection]()
    for _ in range(SOCKETS):
        with _counted(attacker):
            sockets.append(_live(attacker))
            for number in range(EACH):
                said = {"do": "subscribe", "id": str(number), "serviceObject": device}
                sockets[-1].send(json.dumps({**said, "stream": "s"}), text=True)
            for _ in range(EACH):
                attacker.got[str(json.loads(sockets[-1].recv(10))["is"])] += 1
    return device, sockets


def _wake_and_close(attacker: Attacker, crowd: tuple[str, list[ClientConnection]]) -> None:
    """Have all woken while there is time, and then close all of them at once."""
    device, sockets = crowd
    while attacker.left() > attacker.seconds / 2:
        attacker.put(device)
        for each in sockets:
            with _counted(attacker):
                for _ in range(EACH):
                    each.recv(5)
                    attacker.got["updates"] += 1
    for each in sockets:
        each.socket.close()


# D4


def _long_log(attacker: Attacker) -> str:
    busy = attacker.create(document({}))
    attacker.together(8, lambda n: attacker.put(busy, timestamp=n + 1), RECORDS)
    return attacker.create(document({}))


def _from_the_beginning(attacker: Attacker, silent: str) -> None:
    wanted = {"callback": "pull", "from": "beginning"}
    attacker.together(2, lambda _: subscribe(attacker, silent, wanted), READERS)
    for _ in attacker.every(PERIOD_SECONDS):
        pass


# D5


def hanging(number: int) -> dict[str, Any]:
    """Return a callback to an address from which no answer comes."""
    return {"callback": "http", "destination": f"http://192.0.2.{number % 250 + 1}/{number}"}


def _hanging(attacker: Attacker) -> str:
    device = attacker.create(document({}))
    for number in range(CALLS):
        subscribe(attacker, device, hanging(number))
    return device


def _updates(attacker: Attacker, device: str) -> None:
    for _ in attacker.every(PERIOD_SECONDS / 10):
        attacker.put(device)


# D6


def _pings(attacker: Attacker, _nothing: None) -> None:
    def flood(_number: int) -> None:
        with counted(attacker), attacker.open(attacker.place.settings.delivery.port) as plain:
            key = ("Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==", "Sec-WebSocket-Version: 13")
            upgrade = ("Connection: Upgrade", "Upgrade: websocket", *key)
            plain.sendall(attacker.head("GET", "/live", *upgrade))
            plain.recv(4096)
            while attacker.left():
                plain.sendall(PING * PINGS)
                plain.recv(65_536)
                attacker.got["pings"] += PINGS

    attacker.together(4, flood)


# D7


def _nothing(_attacker: Attacker) -> None:
    return None


def _byte_by_byte(attacker: Attacker, _nothing: None) -> None:
    request = b"GET /x/streams/s/live HTTP/1.1\r\nHost: a\r\n" + b"X-A: b\r\n" * 60

    def drip(_number: int) -> None:
        with counted(attacker), attacker.open(attacker.place.settings.delivery.port) as plain:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for each in request:
                plain.sendall(bytes([each]))
                attacker.got["bytes"] += 1
                if not attacker.left():
                    return

    attacker.together(STRANGERS, drip)


# D8


def _unknown(attacker: Attacker, _nothing: None) -> None:
    """Ask as well as one can without a token, each time on a connection of its own."""
    settings = attacker.place.settings
    ports = (settings.api.port, settings.delivery.port)
    request = b"GET /x/streams/s/live HTTP/1.1\r\nHost: a\r\n\r\n"

    def ask(number: int) -> None:
        port = ports[number % len(ports)]
        with counted(attacker), attacker.open(port, come_from=ELSEWHERE) as plain:
            plain.sendall(request)
            attacker.got["asked"] += 1

    attacker.together(STRANGERS, ask)


ATTACKS = (
    Attack("D1", "callbacks of fifty headers that are templates", _templates, _large_updates),
    Attack("D2", "a hundred actions with all of 900 KB", _acting, _large_outputs),
    Attack("D3", "5,000 live subscriptions, woken and closed", _crowd, _wake_and_close),
    Attack("D4", "subscriptions from the beginning of a long log", _long_log, _from_the_beginning),
    Attack("D5", "200 callbacks to who never answers", _hanging, _updates),
    Attack("D6", "pings over four sockets", _nothing, _pings),
    Attack("D7", "requests byte by byte without a token", _nothing, _byte_by_byte),
    Attack(
        "D8", f"{STRANGERS} strangers that ask on and on, and wait for none", _nothing, _unknown
    ),
)
