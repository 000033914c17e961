"""Group B: what could take the API, changes or delivery from everybody."""

from __future__ import annotations

import itertools
import resource
import select
import socket
import string
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from benchmarks.attacks.attack import Attack, composite, document
from benchmarks.attacks.attacker import ELSEWHERE, Attacker, counted
from benchmarks.attacks.stopping import MAX_BODY

FEW, MANY = 1100, 5000
HALF = 64
"""Requests that are never finished: twice what one API process works on at once."""

MEGABYTES = 100


def _nothing(_attacker: Attacker) -> None:
    return None


# B1


def _silence(attacker: Attacker, _nothing: None) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    settings = attacker.place.settings
    ports = (settings.api.port, settings.delivery.port)
    half = attacker.left() / 2
    opened = _silent(attacker, ports, FEW)
    time.sleep(max(0.0, attacker.left() - half))
    opened += _silent(attacker, ports, MANY - FEW)
    time.sleep(max(0.0, attacker.left() - 0.5))
    poll = select.poll()
    for each in opened:
        poll.register(each, select.POLLIN)
    ended = len(poll.poll(0))
    attacker.got["connections closed"] += ended
    attacker.got["connections open"] += len(opened) - ended


def _silent(attacker: Attacker, ports: tuple[int, ...], count: int) -> list[socket.socket]:
    opened = []
    for port in ports * count:
        with counted(attacker):
            plain = socket.socket()
            plain.setblocking(False)  # a full queue of connections is not waited for
            plain.bind((ELSEWHERE, 0))
            plain.connect_ex((attacker.place.host, port))
            opened.append(plain)
    return opened


# B2


def _half_sent(attacker: Attacker, service_object: str) -> None:
    path = f"/{service_object}/streams/s"

    def half(_number: int) -> None:
        with counted(attacker), attacker.open(attacker.place.settings.api.port) as plain:
            plain.sendall(attacker.head("PUT", path, "Content-Length: 1000") + b'{"channels":')
            attacker.wait_for_answer(plain, "half PUT")

    attacker.together(HALF, half)


def _device(attacker: Attacker) -> str:
    return attacker.create(document({}, "string"))


# B3


def _surrogates(attacker: Attacker) -> str:
    code = 'function(s){return "\\ud800"}'
    lists = 'function(s){return ["\\udfff","a"]}'
    streams = {"one": composite(code, "string"), "two": composite(lists, "Array[string]")}
    return attacker.create(document(streams))


def _ten_a_second(attacker: Attacker, service_object: str) -> None:
    for _ in attacker.every(0.1):
        attacker.put(service_object)


# B4


def amplified(channels: int, code: str, victims: Sequence[str] = ()) -> dict[str, Any]:
    """Return a document of few bytes that names 900 references in each channel, by an alias `X`.

    `code` names the alias; with victims the references are to their public streams `s0`.
    """
    letters = string.ascii_letters + string.digits
    pairs = itertools.product(letters, repeat=2)
    source = "g" if victims else "s"
    references = "".join(f"{{${source}.{a}{b}}}" for a, b in itertools.islice(pairs, 900))
    found: dict[str, Any] = {
        "aliases": [{"X": references}],
        "streams": {
            "s": {"channels": {"v": {"type": "number"}}},
            "c": {
                "channels": {
                    f"c{n}": {"type": "string", "current-value": code} for n in range(channels)
                }
            },
        },
    }
    if victims:
        found["groups"] = {"g": {"soIds": list(victims), "stream": "s0"}}
    return found


def _amplified(attacker: Attacker, _nothing: None) -> None:
    refused = orjson.dumps(amplified(100, "'XX'"))
    accepted = amplified(20, "'X'")
    subscribing = amplified(20, "'X'", (attacker.place.victim, attacker.place.changed))

    def post(number: int) -> None:
        if number == 0:
            for _ in range(3):
                attacker.create(subscribing)
        elif number % 8 == 1:
            service_object = attacker.create(accepted)
            if service_object:
                attacker.put(service_object)
        else:
            attacker.request("POST", "/", refused)

    attacker.together(8, post)


# B5


def many_programs(programs: int, first: int = 0) -> dict[str, Any]:
    """Return a document of so many small programs, other ones for another `first`."""
    streams = {}
    for start in range(0, programs, 500):
        names = range(start, min(start + 500, programs))
        streams[f"c{start}"] = {
            "channels": {
                f"c{n}": {"type": "number", "current-value": f"s=>{first + n}"} for n in names
            }
        }
    return document(streams)


def _many_programs(attacker: Attacker, _nothing: None) -> None:
    numbers = itertools.count(1)

    def post(number: int) -> None:
        if number % 4 == 0:
            service_object = attacker.create(many_programs(2000, 10_000 * next(numbers)))
            if service_object:
                attacker.put(service_object)
        else:
            attacker.create(many_programs(4900, 10_000 * next(numbers)))

    attacker.together(4, post)


# B6


def _long_history(attacker: Attacker) -> str:
    service_object = _device(attacker)
    value = "x" * (MAX_BODY - 200)
    attacker.together(4, lambda _: attacker.put(service_object, value), MEGABYTES)
    return service_object


def _slow_readers(attacker: Attacker, service_object: str) -> None:
    unread = [each for _ in range(5) for each in _unread(attacker, service_object)]

    def read(_number: int) -> None:
        with counted(attacker), attacker.open(attacker.place.settings.api.port) as plain:
            plain.sendall(attacker.head("GET", f"/{service_object}/streams/s"))
            first = plain.recv(65_536)
            attacker.got[f"GET {first[9:12].decode() or 'closed'}"] += 1
            while attacker.left() and (part := plain.recv(65_536)):
                attacker.got["bytes read slowly"] += len(part)
                time.sleep(0.05)

    attacker.together(4, read)
    attacker.got["sockets left unread"] += len(unread)


def _unread(attacker: Attacker, service_object: str) -> Iterator[socket.socket]:
    upgrade = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    )
    path = f"/{service_object}/streams/s/live?after=0"
    with counted(attacker):
        plain = attacker.open(attacker.place.settings.delivery.port, receive_buffer=4096)
        plain.sendall(attacker.head("GET", path, *upgrade))
        yield plain


# B7


def _starved(attacker: Attacker, service_object: str) -> None:
    path = f"/{service_object}/streams/s"

    def busy() -> None:
        attacker.together(4, lambda _: attacker.put(service_object, "x" * 1000))

    threading.Thread(target=busy, daemon=True).start()

    def ask(number: int) -> None:
        if number % 2:
            attacker.create(document({"c": composite(f"s=>{number}")}))
        else:
            attacker.request("GET", f"{path}/lastUpdate")

    attacker.together(200, ask)


ATTACKS = (
    Attack("B1", "1,100, then 5,000 silent connections to each port", _nothing, _silence),
    Attack("B2", "64 PUTs of which half is sent", _device, _half_sent),
    Attack("B3", "half a surrogate pair in outputs", _surrogates, _ten_a_second),
    Attack("B4", "documents whose aliases multiply references", _nothing, _amplified),
    Attack("B5", "documents of thousands of programs", _nothing, _many_programs),
    Attack("B6", "100 MB read slowly, and not at all", _long_history, _slow_readers),
    Attack("B7", "200 connections that read behind and create", _device, _starved),
)
