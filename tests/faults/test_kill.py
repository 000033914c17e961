"""Any process may be killed at any moment: nothing that was acknowledged is lost.

During a replay one process gets SIGKILL. The supervisor starts it again, devices repeat
what was not acknowledged, and in the end everything stored is what an undisturbed replay
stores; whoever watched the derived streams has seen every update.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from process_walks import below, children, pipeline_workers, runs, spark_drivers
from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until

from servioticy.domain.model import StreamRef

UPDATES = 240
KILLED_AT = 80

DEVICE = {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}
BEGIN = 1_700_000_000
SERIES = [(BEGIN + n, float((n * 37) % 100)) for n in range(1, UPDATES + 1)]


def derived(first: str, second: str) -> dict[str, Any]:
    """A filter, a chain, a memory of its own, a group and windows, over two devices."""
    value = '.channels.v["current-value"]'
    return {
        "version": "0.2.0",
        "groups": {
            "first": {"soIds": [first], "stream": "data"},
            "both": {"soIds": [first, second], "stream": "data"},
        },
        "streams": {
            "some": _stream(f"function(first){{return first{value}<20?null:first{value}+1}}"),
            "next": _stream(f"function(some){{return some{value}*2}}"),
            "mean": _stream(
                f"function(both, mean){{return mean===null?both{value}:"
                f"mean{value}+(both{value}-mean{value})/8}}"
            ),
            "of-time": _stream(
                "function(both){return both.mean('v') + both.quantile('v', 0.9)}",
                {"type": "hopping", "size": "9s", "every": "3s", "idle": "1h"},
            ),
            "of-ten": _stream(
                "function(both, some){return both.sum('v') - some.max('v')}",
                {"type": "count", "size": 10, "every": 4},
            ),
        },
    }


def _stream(code: str, window: dict[str, Any] | None = None) -> dict[str, Any]:
    channels = {"v": {"type": "number", "current-value": code}}
    return {"channels": channels} | ({"window": window} if window else {})


class Replay:
    """Two devices and what is derived from them."""

    def __init__(self, platform: RunningPlatform) -> None:
        self.platform = platform
        devices = [platform.create(DEVICE), platform.create(DEVICE)]
        composite = platform.create(derived(*devices))
        self.inputs = [StreamRef(each, "data") for each in devices]
        self.outputs = [
            StreamRef(composite, name) for name in ("some", "next", "mean", "of-time", "of-ten")
        ]
        self.seen: list[set[int]] = [set() for _ in self.outputs]
        self._stop = threading.Event()
        self._watchers = [
            threading.Thread(target=self._watch, args=pair, daemon=True)
            for pair in zip(self.outputs, self.seen, strict=True)
        ]

    def run(self, at_kill: Callable[[], None] = lambda: None) -> list[list[dict[str, Any]]]:
        """Send everything, in order; what is stored in the end, stream by stream."""
        for each in self._watchers:
            each.start()
        for number, (timestamp, value) in enumerate(SERIES):
            if number == KILLED_AT:
                at_kill()
            self.platform.put(self.inputs[number % 2], timestamp, v=value)
        stored = [self.platform.updates(each) for each in (*self.inputs, *self.outputs)]
        expected = [{update["lastUpdate"] for update in each} for each in stored[2:]]
        until(lambda: self.seen == expected, SECONDS_TO_RECOVER)
        self._stop.set()
        for each in self._watchers:
            each.join()
        return stored

    def _watch(self, stream: StreamRef, seen: set[int]) -> None:
        for frame in self.platform.follow(stream).updates(self._stop):
            seen.add(json.loads(frame)["lastUpdate"])


@pytest.fixture(scope="module")
def undisturbed(platform: RunningPlatform) -> Iterator[list[list[dict[str, Any]]]]:
    """What is stored when nothing is killed."""
    stored = Replay(platform).run()
    assert len(stored[0]) + len(stored[1]) == UPDATES
    assert all(stored[2:])
    yield stored


def _sandboxes(platform: RunningPlatform) -> list[int]:
    return [each for each in below(platform.pids()["pipeline"]) if runs(each, b"zygote")]


VICTIMS: dict[str, Callable[[RunningPlatform], list[int]]] = {
    "python workers": lambda platform: pipeline_workers(platform.pids()["pipeline"]),
    "sandbox": _sandboxes,
    "spark jvm": lambda platform: spark_drivers(platform.pids()["pipeline"]),
    "pipeline": lambda platform: [platform.pids()["pipeline"]],
    "api": lambda platform: [platform.pids()["api"]],
    "api worker": lambda platform: children(platform.pids()["api"])[:1],
    "delivery": lambda platform: [platform.pids()["delivery"]],
    "broker": lambda platform: [platform.pids()["kafka"]],
    "postgres": lambda platform: [platform.pids()["postgres"]],
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("victim", VICTIMS)
def test_replay_ends_the_same_after_kill_9(
    victim: str, platform: RunningPlatform, undisturbed: list[list[dict[str, Any]]]
) -> None:
    """A 2xx is a promise, kept through the sudden death of any process."""
    killed: list[int] = []

    def is_killed() -> bool:
        """One may just be starting again after the test before."""
        for pid in VICTIMS[victim](platform):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
        return bool(killed)

    def kill() -> None:
        until(is_killed, SECONDS_TO_RECOVER)

    stored = Replay(platform).run(kill)

    assert killed
    assert stored == undisturbed
