"""Group M: what MQTT and STOMP clients could do, with a token and without."""

from __future__ import annotations

import socket
import struct
import time

import orjson

from benchmarks.attacks.attack import Attack
from benchmarks.attacks.attacker import Attacker, counted

FLOODERS = 50
CROWD, REQUESTS = 130, 8
SILENT = 3_000
PING = b"\xc0\0"
NEWLINES = b"\n" * 16_384
BEATS = ("²,0", "9" * 5_000 + ",1", "٣,1_0")


def hello(name: str, token: str = "") -> bytes:
    """Return a CONNECT of MQTT 3.1.1."""
    flags = 0xC2 if token else 0x02
    content = b"\0\4MQTT" + bytes([4, flags]) + b"\0\0" + _text(name)
    if token:
        content += _text("somebody") + _text(token)
    return _packet(0x10, content)


def request(token: str, number: int) -> bytes:
    """Return a PUBLISH of quality of service 1 with a request to the REST API."""
    meta = {"authorization": token, "method": "GET", "url": "/", "messageId": number}
    body = orjson.dumps({"meta": meta})
    return _packet(0x32, _text(f"{token}/from") + struct.pack(">H", number) + body)


def _text(content: str) -> bytes:
    return struct.pack(">H", len(content.encode())) + content.encode()


def _packet(first: int, content: bytes) -> bytes:
    size, length = len(content), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([first]) + length + bytes([size]) + content


def _nothing(_attacker: Attacker) -> None:
    """There is nothing to make ready."""


def _flood(attacker: Attacker, first: bytes, again: bytes) -> None:
    """Send the same over and over, from many connections that come again when they are cut."""

    def one(_number: int) -> None:
        with counted(attacker), attacker.open(attacker.place.settings.mqtt.port) as plain:
            plain.sendall(first)
            while attacker.left():
                plain.sendall(again)
                attacker.got["sent"] += 1

    attacker.together(FLOODERS, one)


def _pings(attacker: Attacker, _made: None) -> None:
    _flood(attacker, hello("stranger"), PING * 8_192)


def _newlines(attacker: Attacker, _made: None) -> None:
    _flood(attacker, b"", NEWLINES)


def _requests(attacker: Attacker, _made: None) -> None:
    """Each client asks, and goes without waiting for the answers."""
    token = attacker.place.token
    asked = b"".join(request(token, number) for number in range(1, REQUESTS + 1))

    def one(number: int) -> None:
        with counted(attacker), attacker.open(attacker.place.settings.mqtt.port) as plain:
            plain.sendall(hello(f"crowd-{number % CROWD}", token) + asked)
            attacker.got["asked"] += REQUESTS
            time.sleep(min(1.0, attacker.left()))

    attacker.together(CROWD, one)


def _silence(attacker: Attacker, _made: None) -> None:
    kept: list[socket.socket] = []

    def one(_number: int) -> None:
        with counted(attacker):
            kept.append(attacker.open(attacker.place.settings.mqtt.port))

    attacker.together(8, one, SILENT)
    attacker.got["silent"] += len(kept)
    while attacker.left():
        time.sleep(0.1)
    for each in kept:
        each.close()


def _beats(attacker: Attacker, _made: None) -> None:
    def one(number: int) -> None:
        said = f"CONNECT\naccept-version:1.2\nheart-beat:{BEATS[number % len(BEATS)]}\n\n\0"
        with counted(attacker), attacker.open(attacker.place.settings.mqtt.port) as plain:
            plain.sendall(said.encode())
            attacker.wait_for_answer(plain, "STOMP")

    attacker.together(4, one)


ATTACKS = (
    Attack("M1", f"{FLOODERS} MQTT connections without a token that ping", _nothing, _pings),
    Attack("M2", f"{FLOODERS} STOMP connections that send newlines", _nothing, _newlines),
    Attack("M3", f"{CROWD} MQTT clients with {REQUESTS} requests each", _nothing, _requests),
    Attack("M4", f"{SILENT:,} silent connections to MQTT's port", _nothing, _silence),
    Attack("M5", "heart-beats that are no numbers", _nothing, _beats),
)
