"""The engine over series through windows, whose clock is that of the updates."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from memory import MemoryPlatform
from new_service_objects import new_service_object
from put_off_runs import Runs, Whims
from python_evaluator import PythonEvaluator, Trigger

from sandbox import argument_names
from servioticy.domain.evaluators.every import every
from servioticy.domain.records import UpdateRecord

BASE = 1_700_000_000
"""The time at which series begin, in seconds."""
NOW = BASE + 2_000

CUTS: dict[str, dict[str, Any]] = {
    "tumbling": {"window": {"type": "tumbling", "size": "7s"}},
    "delayed": {"window": {"type": "tumbling", "size": "5s", "delay": "3s", "idle": "20s"}},
    "hopping": {"window": {"type": "hopping", "size": "6s", "every": "2s"}},
    "across": {"window": {"type": "hopping", "size": "5s", "every": "3s", "idle": "9s"}},
    "sliding": {"window": {"type": "sliding", "size": "5s"}},
    "sessions": {"window": {"type": "session", "gap": "3s", "max": "12s"}},
    "count": {"window": {"type": "count", "size": 4, "every": 2}},
    "global": {"window": {"type": "global"}},
    "silence": {"silent": "9s"},
    "revised": {"window": {"type": "tumbling", "size": "4s", "lateness": "6s"}},
    "early": {"window": {"type": "tumbling", "size": "6s", "emit": "updates"}},
    "early on a condition": {
        "window": {"type": "tumbling", "size": "6s", "emit": {"when": "true"}}
    },
    "early at times": {
        "window": {"type": "hopping", "size": "6s", "every": "2s", "emit": {"every": "3s"}}
    },
}
GRAPHS: dict[str, tuple[dict[str, tuple[str, ...]], set[str]]] = {
    "one": ({"c0": ("d0",)}, {"c0"}),
    "two inputs": ({"c0": ("d0", "d1")}, {"c0"}),
    "two of one": ({"c0": ("d0",), "c1": ("d0", "d1")}, {"c0", "c1"}),
    "what reads windows": ({"c0": ("d0",), "c1": ("c0", "d1")}, {"c0"}),
    "behind others": ({"c0": ("d0", "d1"), "c1": ("c0",)}, {"c1"}),
    "windows of windows": ({"c0": ("d0",), "c1": ("c0", "d1")}, {"c0", "c1"}),
    "a circle": ({"c0": ("d0", "c1"), "c1": ("c0",)}, {"c0"}),
}


def value_of(document: bytes) -> int:
    found: int = json.loads(document)["channels"]["v"]["current-value"]
    return found


def compute(trigger: Trigger, documents: list[bytes | None]) -> int:
    """What tells one window from another; of others the sum."""
    value = value_from(trigger, documents)
    return value % 3 != 0 if trigger.is_condition else value


def value_from(trigger: Trigger, documents: list[bytes | None]) -> int:
    document = json.loads(documents[trigger.argument] or b"")
    if "windows" not in document:
        return sum(value_of(each) for each in documents[:-1] if each) % 10**9
    found = [each for each in document["windows"] if each is not None]
    if "silent" in found[0]:
        return int(found[0]["count"]) * 10 + found[0]["silent"]
    some = [each for each in found if each["count"]]
    return (
        sum(
            each["count"] * 10**6 + int(each["sum"]["v"]) + (number + 1) * int(each["last"]["v"])
            for number, each in enumerate(some)
        )
        % 10**12
    )


def body_of(reads: dict[str, tuple[str, ...]], cuts: dict[str, str]) -> dict[str, Any]:
    streams: dict[str, Any] = {n: {"channels": {"v": {"type": "number"}}} for n in ("d0", "d1")}
    for name, read in reads.items():
        code = f"function({', '.join(read)}){{return 1}}"
        streams[name] = {"channels": {"v": {"type": "number", "current-value": code}}}
        streams[name] |= CUTS[cuts[name]] if name in cuts else {}
    return {"version": "0.2.0", "streams": streams}


def document(timestamp: int, value: int) -> bytes:
    body = {"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp}
    return json.dumps(body, separators=(",", ":")).encode()


class Real:
    """The engine, whose clock is that of the updates; each time comes when it is due."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.platform = MemoryPlatform()
        tenant = self.platform.tenants.tenant_of(self.platform.tenants.create_tenant("t"))
        self.platform.changes.create(new_service_object(tenant, "so", body))
        self._now = -1.0
        self._runs = Runs(
            self.platform,
            every(PythonEvaluator(compute)),
            Whims([]),
            {},
            now=lambda: self._now,
        )
        self._runs.take(0, 0)

    def put(self, stream: str, timestamp: int, value: int) -> None:
        self.pass_to(timestamp)
        update = msgspec.Raw(document(timestamp, value))
        record = UpdateRecord("so", stream, timestamp, update, at=timestamp * 1000)
        self.platform.log.append(0, record)
        self._taken_in()

    def pass_to(self, timestamp: int) -> None:
        entries = self.platform.partition_store(argument_names)
        while (due := entries.next_due(0, int(self._now * 1000))) is not None:
            if due > timestamp * 1000:
                break
            self._now = due / 1000
            self._runs.rest()
            self._taken_in()
        self._now = max(self._now, timestamp)

    def _taken_in(self) -> None:
        state = self.platform.state
        while (first := state.progress[0].next_offset) < len(state.log[0]):
            self._runs.take(first, len(state.log[0]))
        self._runs.finish()

    def stored(self) -> dict[str, list[tuple[int, bytes]]]:
        state = self.platform.state
        names = {number: ref[1] for ref, number in state.streams.items()}
        found: dict[str, list[tuple[int, bytes]]] = {}
        for _partition, row in state.updates.values():
            found.setdefault(names[row.stream_id], []).append((row.timestamp, row.document))
        return {name: sorted(each) for name, each in found.items()}
