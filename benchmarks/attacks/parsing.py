"""Group P: requests that were found to take more of the API than they send, or than is theirs."""

from __future__ import annotations

import time

import orjson

from benchmarks.attacks.attack import Attack, document
from benchmarks.attacks.attacker import Attacker, counted
from benchmarks.connection import Connection, NoAnswer

UPDATES = 20_000
SEARCHES = 60
STRANGERS = 50
HEADER_BYTES, SENML_BYTES = 200_000, 360_000
THREADS = 8


def _device(attacker: Attacker) -> str:
    return attacker.create(document({}))


# P1


def _history(attacker: Attacker) -> str:
    """A stream whose values say nothing of where they are, so that each block has to be read."""
    service_object = _device(attacker)
    path = f"/{service_object}/streams/s/updates"
    for first in range(1, UPDATES, 1000):
        some = [
            {"channels": {"v": {"current-value": n * 7919 % 1000}}, "lastUpdate": n}
            for n in range(first, first + 1000)
        ]
        attacker.request("POST", path, orjson.dumps(some))
    return service_object


def _searches(attacker: Attacker, service_object: str) -> None:
    path = f"/{service_object}/streams/s/search"

    def search(number: int) -> None:
        low = number % 900
        wanted = {
            "numericrange": True,
            "rangefrom": low,
            "rangeto": low + 100,
            "numericrangefield": "channels.v.current-value",
        }
        attacker.request("POST", path, orjson.dumps(wanted))

    attacker.together(SEARCHES, search)


# P2


def _one_byte_chunks(attacker: Attacker, service_object: str) -> None:
    """Without a token: the head says who asks, and nobody does."""
    head = (
        f"PUT /{service_object}/streams/s HTTP/1.1\r\nHost: {attacker.place.host}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    ).encode()
    chunks = b"1\r\nx\r\n" * 1000

    def send(_number: int) -> None:
        with counted(attacker), attacker.open(attacker.place.settings.api.port) as plain:
            plain.sendall(head)
            while attacker.left():
                plain.sendall(chunks)
                attacker.got["chunks"] += 1000

    attacker.together(STRANGERS, send)


# P3, P4


def _sent_as(attacker: Attacker, service_object: str, content_type: str, body: bytes) -> None:
    """Send the same batch from all threads, each with a connection of its own for it."""

    def send(_number: int) -> None:
        place = attacker.place
        connection = Connection(place.settings, place.token, content_type=content_type)
        try:
            while attacker.left():
                path = f"/{service_object}/streams/s/updates"
                status, _ = connection.request("POST", path, body)
                attacker.got[f"POST {status}"] += 1
        except NoAnswer as error:
            attacker.got[type(error).__name__] += 1
            time.sleep(0.01)

    attacker.together(THREADS, send)


def wide_csv() -> bytes:
    """Return a table whose header has as many short names as fit."""
    names, size = ["lastUpdate"], 10
    while size < HEADER_BYTES:
        names.append(f"c{len(names)}")
        size += len(names[-1]) + 1
    return ",".join(names).encode() + b"\n1\n"


def long_senml() -> bytes:
    """Return a pack of many records with one time, each of another name."""
    records: list[dict[str, object]] = []
    size = 2
    while size < SENML_BYTES:
        records.append({"n": f"c{len(records)}", "t": 1, "v": 1})
        size += len(orjson.dumps(records[-1])) + 1
    return orjson.dumps(records)


def _wide_csv(attacker: Attacker, service_object: str) -> None:
    _sent_as(attacker, service_object, "text/csv", wide_csv())


def _long_senml(attacker: Attacker, service_object: str) -> None:
    _sent_as(attacker, service_object, "application/senml+json", long_senml())


ATTACKS = (
    Attack("P1", "60 searches at once", _history, _searches),
    Attack("P2", "50 strangers that send chunks of a byte", _device, _one_byte_chunks),
    Attack("P3", "CSV with a header of 200 KB from 8 threads", _device, _wide_csv),
    Attack("P4", "SenML of 360 KB from 8 threads", _device, _long_senml),
)
