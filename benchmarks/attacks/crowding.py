"""Group C: what could hold up a partition without breaking a limit, and a plain flood."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from typing import Any

import orjson

from benchmarks.attacks.attack import Attack, composite, document
from benchmarks.attacks.attacker import Attacker

STREAMS = 999
TURNS = 2_500_000
"""Of an empty loop: about 63 ms on the machine of docs/benchmarks.md, below every limit."""

FOREIGN = 20
SUBSCRIBERS = 13_500
NEWEST = 1_000_000_000
BATCH = 1_000


# C1


def slow_composites() -> dict[str, Any]:
    """As many composites as a document takes, each slow and none too slow."""
    code = f"function(s){{var x=0;for(var i=0;i<{TURNS};i++){{x=x+i}}return x}}"
    return document({f"c{n}": composite(code) for n in range(STREAMS)})


def _slow_composites(attacker: Attacker) -> str:
    return attacker.create(slow_composites())


def _every_second(attacker: Attacker, service_object: str) -> None:
    for _ in attacker.every(1.0):
        attacker.put(service_object)


# C2


def subscribers(source: str, stream: str, count: int) -> dict[str, Any]:
    """Return a document of so many composites that subscribe to that stream."""
    groups = {"g": {"soIds": [source], "stream": stream}}
    streams = {f"c{n}": composite("function(g){return 1}") for n in range(count)}
    return {"version": "0.2.0", "groups": groups, "streams": streams}


def _foreign_subscribers(attacker: Attacker) -> list[str]:
    wanted = subscribers(attacker.place.victim, "s0", 1000)
    made: list[str] = []
    attacker.together(2, lambda _: made.append(attacker.create(wanted)), FOREIGN)
    return made


def _stay_and_go(attacker: Attacker, made: list[str]) -> None:
    """While they subscribe, the attack goes on: it ends when the last of them is deleted."""
    while attacker.left() > attacker.seconds / 2:
        time.sleep(0.1)
    attacker.together(1, lambda number: attacker.request("DELETE", f"/{made[number]}"), len(made))


# C3


@dataclass(slots=True)
class Crowd:
    """A device with many subscribers, and small objects among them that can be changed."""

    device: str
    small: list[str]
    numbers: itertools.count[int] = field(default_factory=itertools.count)


def _crowd(attacker: Attacker) -> Crowd:
    device = attacker.create(document({}))
    attacker.put(device, timestamp=NEWEST)
    sizes = [1000] * (SUBSCRIBERS // 1000) + [SUBSCRIBERS % 1000]
    wanted = (subscribers(device, "s", size) for size in sizes)
    attacker.together(1, lambda _: attacker.create(next(wanted)), len(sizes))
    small = [attacker.create(subscribers(device, "s", 1)) for _ in range(4)]
    attacker.put(device, timestamp=NEWEST + 1)
    return Crowd(device, small)


def _old_and_changed(attacker: Attacker, crowd: Crowd) -> None:
    def work(number: int) -> None:
        attacker.put(crowd.device, timestamp=next(crowd.numbers) + 1)
        if number % 4 == 0:
            small = crowd.small[number // 4 % len(crowd.small)]
            changed = subscribers(crowd.device, "s", 1)
            changed["streams"]["c0"] = composite(f"function(g){{return {number}}}")
            attacker.request("PUT", f"/{small}", orjson.dumps(changed))

    attacker.together(4, work)


# Flood


def _device(attacker: Attacker) -> str:
    return attacker.create(document({"c": composite('s=>s.channels.v["current-value"]+1')}))


def _flood(attacker: Attacker, service_object: str) -> None:
    attacker.together(16, lambda _: attacker.put(service_object))


# C4


def _batches(attacker: Attacker, service_object: str) -> None:
    """Each is accepted at once, and is a thousand records of the log."""
    numbers = itertools.count()
    path = f"/{service_object}/streams/s/updates"

    def post(_number: int) -> None:
        first = BATCH * next(numbers) + 1
        some = [
            {"channels": {"v": {"current-value": at}}, "lastUpdate": at}
            for at in range(first, first + BATCH)
        ]
        attacker.request("POST", path, orjson.dumps(some))

    attacker.together(4, post)


ATTACKS = (
    Attack("C1", "999 composites of 63 ms each, once a second", _slow_composites, _every_second),
    Attack("C2", "20,000 subscribers of another's stream", _foreign_subscribers, _stay_and_go),
    Attack("C3", "13,500 subscribers, old timestamps, small changes", _crowd, _old_and_changed),
    Attack("C4", f"batches of {BATCH:,} updates from 4 connections", _device, _batches),
    Attack("flood", "updates as fast as 16 connections allow", _device, _flood),
)
