"""The neighbours: what each of them does, and which quotas it has.

Quotas are small, so that ten times as much can be sent by one machine that also runs the
platform.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from benchmarks.attacks.attack import Attack, composite, document
from benchmarks.attacks.attacker import Attacker
from benchmarks.attacks.crowding import subscribers
from benchmarks.connection import Connection, NoAnswer

UPDATES = 30
"""The quota of the one who floods, a second."""
TIMES = 10
SENDERS = 32

TURNS_A_MS = 40_000
"""Of an empty loop, on the machine of docs/benchmarks.md."""
NEARLY_MS = 85
"""A frame with one step has 101 ms."""
STEPS = 5
"""So many of them are below `max_tree_script_ms`."""
LITTLE_MS = 20
LITTLE_PERIOD_SECONDS = 0.05
"""Together 40 % of the partition's time: below `tenant_share`."""

COMPOSITES = 10_000
A_DOCUMENT = 1_000

STRANGERS = 4
STRANGERS_MS = 50
"""Each: about what foreign composites may take of another's tree."""
PROVIDERS_PERIOD_SECONDS = 1 / 6

READERS = 6
READERS_MS = 80
READERS_PERIOD_SECONDS = 0.2
"""Of all of them together; each update of theirs takes 0.4 s of their scripts."""

TENANTS = 500
PERIOD_OF_EACH_SECONDS = 10.0
NEIGHBOURS_THREADS = 8


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One kind of neighbour: so many tenants that do this, with these quotas."""

    does: Attack
    quotas: Mapping[str, int] = field(default_factory=dict)
    tenants: int = 1


def loop(milliseconds: float, read: str = "s") -> str:
    """Return a function of what it reads that takes about so long."""
    turns = int(milliseconds * TURNS_A_MS)
    return f"function({read}){{var x=0;for(var i=0;i<{turns};i++){{x=x+i}}return x}}"


def paced(attacker: Attacker, senders: int, period: float, device: str) -> None:
    """Send an update whenever one is due, whatever became of those before it."""
    began = time.monotonic()

    def send(number: int) -> None:
        due = began + number * period
        time.sleep(max(0.0, min(due - time.monotonic(), attacker.left())))
        if attacker.left():
            attacker.put(device)

    attacker.together(senders, send)


def _device(attacker: Attacker) -> str:
    return attacker.create(document({"c": composite('s=>s.channels.v["current-value"]+1')}))


def _flood(attacker: Attacker, device: str) -> None:
    paced(attacker, SENDERS, 1 / (TIMES * UPDATES), device)


def _hostile(attacker: Attacker) -> str:
    return attacker.create(document({f"c{n}": composite(loop(NEARLY_MS)) for n in range(STEPS)}))


def _ten_a_second(attacker: Attacker, device: str) -> None:
    paced(attacker, SENDERS, 0.1, device)


def _just_below(attacker: Attacker) -> str:
    return attacker.create(document({"c": composite(loop(LITTLE_MS))}))


def _steadily(attacker: Attacker, device: str) -> None:
    paced(attacker, SENDERS, LITTLE_PERIOD_SECONDS, device)


def _fan_out(attacker: Attacker) -> str:
    device = attacker.create(document({}))
    wanted = subscribers(device, "s", A_DOCUMENT)
    attacker.together(2, lambda _: attacker.create(wanted), COMPOSITES // A_DOCUMENT)
    attacker.put(device)
    return device


def _every_second(attacker: Attacker, device: str) -> None:
    paced(attacker, SENDERS, 1.0, device)


def _strangers(attacker: Attacker) -> str:
    """Return a public device that others read with slow scripts."""
    device = attacker.create({**document({}), "public": "true"})
    group = {"g": {"soIds": [device], "stream": "s"}}
    slow = {"c": composite(loop(STRANGERS_MS, "g"))}
    body = orjson.dumps({"version": "0.2.0", "groups": group, "streams": slow})
    for token in attacker.place.others:
        _ask(attacker, token, "POST", "/", body)
    return device


def _six_a_second(attacker: Attacker, device: str) -> None:
    paced(attacker, SENDERS, PROVIDERS_PERIOD_SECONDS, device)


def _readers(attacker: Attacker) -> dict[str, str]:
    """Return each one's own device: its composites read that, one the innocents' streams, too."""
    group = {"g": {"soIds": list(attacker.place.innocents), "stream": "s0"}}
    slow = {f"c{n}": composite(loop(READERS_MS)) for n in range(STEPS)}
    joined = composite('(g,s)=>g.channels.v["current-value"]')
    return _of_each(attacker, document({**slow, "joined": joined}, groups=group))


def _each_in_turn(attacker: Attacker, devices: dict[str, str]) -> None:
    _in_turn(attacker, devices, READERS_PERIOD_SECONDS)


def crowd_document() -> dict[str, Any]:
    """Return what each of the many has."""
    return document({"c": composite('s=>s.channels.v["current-value"]+1')})


def _crowd(attacker: Attacker) -> dict[str, str]:
    return _of_each(attacker, crowd_document())


def _of_each(attacker: Attacker, wanted: dict[str, Any]) -> dict[str, str]:
    """Return the device of each of the tokens."""
    found: dict[str, str] = {}
    tokens = (attacker.place.token, *attacker.place.others)
    body = orjson.dumps(wanted)

    def make(number: int) -> None:
        status, content = _ask(attacker, tokens[number], "POST", "/", body)
        if status == 201:
            found[tokens[number]] = orjson.loads(content)["id"]

    attacker.together(NEIGHBOURS_THREADS, make, len(tokens))
    return found


def _each_a_little(attacker: Attacker, devices: dict[str, str]) -> None:
    _in_turn(attacker, devices, PERIOD_OF_EACH_SECONDS / max(1, len(devices)))


def _in_turn(attacker: Attacker, devices: dict[str, str], period: float) -> None:
    began = time.monotonic()
    each = list(devices.items())

    def send(number: int) -> None:
        time.sleep(max(0.0, min(began + number * period - time.monotonic(), attacker.left())))
        if not attacker.left():
            return
        token, device = each[number % len(each)]
        update = {"channels": {"v": {"current-value": 1}}, "lastUpdate": number + 1}
        _ask(attacker, token, "PUT", f"/{device}/streams/s", orjson.dumps(update))

    attacker.together(NEIGHBOURS_THREADS, send)


def _ask(attacker: Attacker, token: str, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Ask on a connection of its own, as a device that wakes does."""
    connection = Connection(attacker.place.settings, token)
    try:
        status, content = connection.request(method, path, body)
    except NoAnswer as error:
        attacker.got[type(error).__name__] += 1
        return 0, b""
    finally:
        connection.close()
    attacker.got[f"{method} {status}"] += 1
    return status, content


_EVERY = (
    Neighbour(
        Attack("flood", f"{TIMES} times its quota of {UPDATES} updates/s", _device, _flood),
        {"updates": UPDATES},
    ),
    Neighbour(
        Attack("hostile", f"{STEPS} steps of about {NEARLY_MS} ms, 10/s", _hostile, _ten_a_second)
    ),
    Neighbour(Attack("just-below", "40 % of the partition's time", _just_below, _steadily)),
    Neighbour(
        Attack("fan-out", f"{COMPOSITES:,} composites of one device, 1/s", _fan_out, _every_second)
    ),
    Neighbour(
        Attack(
            "strangers",
            f"{STRANGERS} tenants' steps of about {STRANGERS_MS} ms on one's public stream, 6/s",
            _strangers,
            _six_a_second,
        ),
        tenants=1 + STRANGERS,
    ),
    Neighbour(
        Attack(
            "readers",
            f"{READERS} tenants with {STEPS} steps of {READERS_MS} ms for updates of their own, "
            f"{1 / READERS_PERIOD_SECONDS:g}/s, that also read the innocents' public streams",
            _readers,
            _each_in_turn,
        ),
        tenants=READERS,
    ),
    Neighbour(
        Attack(
            "crowd",
            f"{TENANTS} tenants, each an update in {PERIOD_OF_EACH_SECONDS:g} s",
            _crowd,
            _each_a_little,
        ),
        tenants=TENANTS,
    ),
)
NEIGHBOURS: Mapping[str, Neighbour] = {each.does.id: each for each in _EVERY}
