"""HTTP callbacks lose nothing, whatever is killed and however often receivers fail.

`SERVIOTICY_TEST_DELIVERIES=100000` makes it as many as that; continuous integration has fewer.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from flaky_receiver import FlakyReceiver, Taken
from running_platform import RunningPlatform, until

from servioticy.domain.model import StreamRef

UPDATES = 20
SUBSCRIPTIONS = int(os.environ.get("SERVIOTICY_TEST_DELIVERIES", "400")) // UPDATES
SECONDS = 60 + SUBSCRIPTIONS // 5
FAILING = 0.3
HOSTS = 50
"""Receivers that a tenant calls at once are bounded for each host."""

VALUE = '.channels.v["current-value"]'
DEVICE = {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}


def doubled(device: str) -> dict[str, Any]:
    """A composite with twice the device's value."""
    code = f"function(d){{return d{VALUE}*2}}"
    return {
        "version": "0.2.0",
        "groups": {"d": {"soIds": [device], "stream": "data"}},
        "streams": {"out": {"channels": {"v": {"type": "number", "current-value": code}}}},
    }


@pytest.mark.timeout(2 * SECONDS + 120)
@pytest.mark.parametrize(
    ("program", "number"),
    [
        ("delivery", signal.SIGKILL),
        ("delivery", signal.SIGTERM),
        ("kafka", signal.SIGKILL),
        ("postgres", signal.SIGKILL),
    ],
)
def test_no_callback_is_lost(
    platform: RunningPlatform,
    program: str,
    number: signal.Signals,
    record_property: Callable[[str, object], None],
) -> None:
    """From what a device sends to what receivers take of what follows from it."""
    device = platform.create(DEVICE)
    composite = platform.create(doubled(device))
    with FlakyReceiver(FAILING) as receiver:
        paths = [f"/{each}" for each in range(SUBSCRIPTIONS)]
        for each, path in enumerate(paths):
            url = f"http://127.0.0.{1 + each % HOSTS}:{receiver.port}{path}"
            status, _, body = platform.request(
                "POST",
                f"/{composite}/streams/out/subscriptions",
                {"callback": "http", "destination": url},
            )
            assert status == 201, body
        for at in range(1, UPDATES + 1):
            if at == UPDATES // 2:
                until(lambda: receiver.count() > 2 * SUBSCRIPTIONS, SECONDS)
                os.kill(platform.pids()[program], number)
            platform.put(StreamRef(device, "data"), at, v=at)
        until(lambda: receiver.count() >= UPDATES * SUBSCRIPTIONS, SECONDS)

    assert receiver.failed
    for path in paths:
        assert receiver.first_times(path) == list(range(1, UPDATES + 1))
        assert len(set(receiver.taken[path])) == UPDATES, "an update has one id"
    if program != "postgres":  # which forgets what it had not written yet
        assert max(map(receiver.repeats, paths)) <= 1
    assert all(later_than_acknowledged(receiver.taken[path]) for path in paths)
    repeats = sum(map(receiver.repeats, paths))
    record_property("repeats", repeats)
    record_property("failed", receiver.failed)


def later_than_acknowledged(taken: list[Taken]) -> bool:
    """Whether it goes back once at most, to where the cursor stood that was stored last."""
    times = [each.timestamp for each in taken]
    return sum(later <= before for before, later in pairwise(times)) <= 1
