"""Group A: what could stop a partition for everybody, for ever."""

from __future__ import annotations

import itertools
import time
from typing import Any

from benchmarks.attacks.attack import Attack, composite, document
from benchmarks.attacks.attacker import Attacker
from servioticy.domain.topics import MAX_MESSAGE_BYTES

MAX_STRING = 65_536
MAX_BODY = 1024 * 1024
PERIOD_SECONDS = 5.0
TIMES = 4


def strings(count: int) -> str:
    """Return a function that makes so many strings of 65,536 characters of one update of `s`."""
    return (
        "function(s){var t='x';while(t.length<60000)t=t+t;var r=[];"
        f"for(var i=0;i<{count};i++)r.push(t);return r}}"
    )


def with_outputs(composites: int, count: int) -> dict[str, Any]:
    """Return a document whose composites make outputs of so many strings each."""
    streams = {f"c{n}": composite(strings(count), "Array[string]") for n in range(composites)}
    return document(streams)


def _large_output(attacker: Attacker) -> str:
    return attacker.create(with_outputs(1, 60))


def _many_large_outputs(attacker: Attacker) -> str:
    # One string less than fits: the document around them has to have room, too.
    return attacker.create(with_outputs(200, MAX_MESSAGE_BYTES // MAX_STRING - 1))


def _now_and_then(attacker: Attacker, service_object: str) -> None:
    for _ in itertools.islice(attacker.every(PERIOD_SECONDS), TIMES):
        attacker.put(service_object)


def escaped_body() -> bytes:
    """Return an update of nearly 1 MiB that doubles with each time it is written into JSON."""
    start, end = b'{"lastUpdate":1,"channels":{"v":{"current-value":"', b'"}}}'
    return start + b'\\"' * ((MAX_BODY - len(start) - len(end)) // 2) + end


def _nothing(_attacker: Attacker) -> None:
    return None


def _dead_letters(attacker: Attacker, _nothing: None) -> None:
    body = escaped_body()
    for _ in itertools.islice(attacker.every(PERIOD_SECONDS), TIMES):
        service_object = attacker.create(document({}, "string"))
        try:
            plain = attacker.open(attacker.place.settings.api.port)
        except OSError as error:
            attacker.got[type(error).__name__] += 1
            continue
        with plain:
            size = f"Content-Length: {len(body)}"
            plain.sendall(attacker.head("PUT", f"/{service_object}/streams/s", size))
            plain.sendall(body[: len(body) // 2])
            time.sleep(0.5)  # its address is looked up by then
            attacker.request("DELETE", f"/{service_object}")
            try:
                plain.sendall(body[len(body) // 2 :])
            except OSError as error:
                attacker.got[type(error).__name__] += 1
                continue
            attacker.wait_for_answer(plain, "PUT deleted")


def _device(attacker: Attacker) -> str:
    return attacker.create(document({"c": composite("function(s){return 1}")}, "string"))


def _large_updates(attacker: Attacker, service_object: str) -> None:
    value = "x" * (MAX_BODY - 200)
    attacker.together(16, lambda _: attacker.put(service_object, value), 1500)


ATTACKS = (
    Attack("A1", "an output larger than a message may be", _large_output, _now_and_then),
    Attack("A2", "a dead letter larger than a message may be", _nothing, _dead_letters),
    Attack(
        "A3", "200 outputs just below 2 MiB from one update", _many_large_outputs, _now_and_then
    ),
    Attack("A4", "1,500 updates of 1 MiB", _device, _large_updates),
)
