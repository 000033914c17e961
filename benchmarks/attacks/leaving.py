"""What could be left behind: versions, tokens, what is listed, lines of the log."""

from __future__ import annotations

import orjson

from benchmarks.attacks.attack import Attack, document
from benchmarks.attacks.attacker import Attacker, counted
from benchmarks.attacks.stopping import MAX_BODY

LARGE = MAX_BODY * 3 // 4


def _nothing(_attacker: Attacker) -> None:
    return None


def _device(attacker: Attacker) -> str:
    return attacker.create(document({}))


def _versions(attacker: Attacker, service_object: str) -> None:
    """Documents of 300 KB, each another one."""

    def put(number: int) -> None:
        body = {**document({}), "description": f"{number} {'x' * 300_000}"}
        attacker.request("PUT", f"/{service_object}", orjson.dumps(body))

    attacker.together(2, put)


def _tokens(attacker: Attacker, _nothing: None) -> None:
    """Half of them end within a second."""

    def make(number: int) -> None:
        life = {"expiresIn": 1} if number % 2 else {}
        attacker.request("POST", "/tokens", orjson.dumps({"name": "t", **life}))

    attacker.together(4, make)


def _listed(attacker: Attacker, _nothing: None) -> None:
    """customFields of many short values, and nothing else."""
    fields = {"values": [f"v{number}" for number in range(LARGE // 10)]}
    body = orjson.dumps({**document({}), "customFields": fields})
    attacker.together(2, lambda _number: attacker.request("POST", "/", body))


def _nonsense(attacker: Attacker, _nothing: None) -> None:
    """What is no protocol at all, to each port, by nobody who is known."""
    settings = attacker.place.settings
    ports = (settings.api.port, settings.delivery.port, settings.mqtt.port)

    def send(number: int) -> None:
        with counted(attacker), attacker.open(ports[number % len(ports)]) as plain:
            plain.sendall(b"\x10\xff\xff\xff\x7f" + bytes(range(256)) * 8 + b"\r\n\r\n")
            attacker.got["nonsense"] += 1

    attacker.together(8, send)


ATTACKS = (
    Attack("left-versions", "a document of 300 KB replaced all the time", _device, _versions),
    Attack("left-tokens", "tokens as fast as 4 connections allow", _nothing, _tokens),
    Attack("left-listings", "customFields of 750 KB to be searched by", _nothing, _listed),
    Attack("left-lines", "nonsense to each port, without a token", _nothing, _nonsense),
)
