"""Where the time of an update goes, from what stands in the topics."""

from __future__ import annotations

import json

import pytest

from benchmarks import hops
from servioticy.domain.model import StreamRef
from servioticy.settings import Settings

ORIGIN, WATCHED = StreamRef("so", "s0"), StreamRef("so", "s1")


def record(service_object: str, stream: str, timestamp: int, **more: object) -> bytes:
    update = {"channels": {"v": {"current-value": 1}}, "lastUpdate": timestamp}
    names = {"service_object": service_object, "stream": stream, "timestamp": timestamp}
    return json.dumps({**names, "update": update, **more}).encode()


TOPICS = {
    "updates": [
        (0.5, record("other", "s0", 1, kind="update")),
        (1.002, record("so", "s0", 1, kind="update")),
        (2.001, record("so", "s0", 2, kind="update")),
    ],
    "emitted": [
        (1.004, record("so", "s0", 1, tenant=1, version=1)),
        (1.006, record("so", "s1", 1, tenant=1, version=1)),
        (2.008, record("so", "s1", 2, tenant=1, version=1)),
    ],
}


def test_each_hop_is_told_of_the_streams_that_are_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hops, "stamped", lambda _settings, topic: iter(TOPICS[topic]))
    updates = {1: hops.Update(1.0, 1.003, 1.009), 2: hops.Update(2.0, 2.002, 2.010)}

    found = hops.hops(Settings(), ORIGIN, WATCHED, updates)

    assert {name: [round(each) for each in values] for name, values in found.items()} == {
        "to the log": [2, 1],
        "to the 202": [3, 2],
        "log to emitted": [4, 7],
        "emitted to socket": [3, 2],
    }
