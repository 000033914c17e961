"""HTTP callbacks of a whole platform: what a device sends reaches a receiver."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec
from flaky_receiver import FlakyReceiver
from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until

from monitoring import status
from monitoring.analysis.tracing import TracedStep, traced
from monitoring.model import RuntimePerformance
from monitoring.state import measurements
from servioticy.domain.traces import id_of, step_of, written
from servioticy.settings import changed, load

DEVICE = {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}
COMPOSITE = {
    "streams": {
        **DEVICE["streams"],
        "twice": {
            "channels": {
                "v": {"type": "number", "current-value": "function(data) { return 2 }"},
            }
        },
    }
}
ON_THE_WAY = {
    *("ingest.take", "log.append", "pipeline.piece"),
    *(f"pipeline.stages.{each}" for each in ("dispatch", "fetch", "transform", "emit")),
    *("sandbox.frame", "storage.store", "pipeline.emission", "delivery.callback"),
}
DELIVERED = {"delivery.offer", "delivery.read"}
"""One or the other: as a durable subscription has caught up, or not."""


def test_a_test_reaches_its_receiver_and_tells_the_answer(platform: RunningPlatform) -> None:
    device = platform.create(DEVICE)
    with FlakyReceiver() as receiver:
        wanted = {"callback": "http", "destination": f"http://127.0.0.1:{receiver.port}/in"}
        _, _, body = platform.request("POST", f"/{device}/streams/data/subscriptions", wanted)
        place = f"/subscriptions/{json.loads(body)['id']}/test"
        assert platform.request("POST", place)[0] == 202
        told: dict[str, Any] = {}

        def is_answered() -> bool:
            told.update(json.loads(platform.request("GET", place)[2]))
            return told["state"] == "answered"

        until(is_answered, SECONDS_TO_RECOVER)

    assert told["status"] == 200
    assert [each.timestamp for each in receiver.taken["/in"]] == [told["askedAt"]]


def test_a_trace_has_each_step_from_the_request_to_the_callback(platform: RunningPlatform) -> None:
    """The receiver is told the trace that the request was of, and which step calls it."""
    device = platform.create(COMPOSITE)
    trace, sender = secrets.token_hex(16), secrets.token_hex(8)
    settings, aspects = changed(load(), data=str(platform.data)), platform.data / "aspects.toml"
    pointcuts = [f'[[aspect]]\npointcut = "{each}"\n' for each in ON_THE_WAY | DELIVERED]

    def put(at: int, headers: Mapping[str, str]) -> None:
        update = {"channels": {"v": {"current-value": 1}}, "lastUpdate": at}
        path = f"/{device}/streams/data"
        assert platform.request("PUT", path, update, headers=headers)[0] == 202
        until(
            lambda: [x.timestamp for x in receiver.taken["/in"]][-1:] == [at], SECONDS_TO_RECOVER
        )

    def measured() -> set[str]:
        return {each.purpose for each in traced(measurements(platform.data), trace)}

    try:
        aspects.write_text("\n".join(pointcuts), "utf-8")
        until(lambda: status.of(settings).is_well, SECONDS_TO_RECOVER)
        with FlakyReceiver() as receiver:
            wanted = {"callback": "http", "destination": f"http://127.0.0.1:{receiver.port}/in"}
            path = f"/{device}/streams/twice/subscriptions"
            assert platform.request("POST", path, wanted)[0] == 201
            put(1, {})  # which has the document read: it goes another way
            put(2, {"traceparent": written(trace, sender, 1)})
            called = receiver.taken["/in"][-1]
        until(lambda: measured() >= ON_THE_WAY and measured() & DELIVERED, SECONDS_TO_RECOVER)
        told = platform.command("monitoring", "trace", trace, "--json").stdout
    finally:
        aspects.unlink()
    lines = b"".join(each.read_bytes() for each in measurements(platform.data)).splitlines()
    (callback,) = [
        msgspec.json.decode(each, type=RuntimePerformance)
        for each in lines
        if trace.encode() in each and b'"nodePurpose":"delivery.callback"' in each
    ]
    found = msgspec.json.decode(told, type=list[TracedStep])
    first = {each.purpose: each for each in reversed(found)}

    assert (id_of(called.trace), step_of(called.trace)) == (trace, callback.step)
    assert (callback.sequence, callback.parent) == (trace, sender)
    assert all(each.lasted > 0 for each in found)
    within = [("ingest.take", "log.append"), ("pipeline.stages.emit", "storage.store")]
    within += [("pipeline.stages.emit", "pipeline.emission")]
    for outer, inner in within:
        assert first[outer].after <= first[inner].after
        assert first[inner].depth == first[outer].depth + 1
    begun = [first[each].after for each in ("storage.store", "delivery.callback")]
    assert begun == sorted(begun)
