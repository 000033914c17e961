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

DELIVERIES = int(os.environ.get("SERVIOTICY_TEST_DELIVERIES", "400"))
UPDATES = max(20, DELIVERIES // 1_000)
SUBSCRIPTIONS = DELIVERIES // UPDATES
SECONDS = 300 + DELIVERIES // 100
KILLS = [
    ("delivery", signal.SIGKILL),
    ("kafka", signal.SIGKILL),
    ("postgres", signal.SIGKILL),
    ("delivery", signal.SIGTERM),
]
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
def test_no_callback_is_lost(
    platform: RunningPlatform, record_property: Callable[[str, object], None]
) -> None:
    """From what a device sends to what receivers take of what follows from it."""
    device = platform.create(DEVICE)
    composite = platform.create(doubled(device))
    with FlakyReceiver(FAILING) as receiver:
        paths = [f"/{each}" for each in range(SUBSCRIPTIONS)]
        for each, path in enumerate(paths):
            url = f"http://127.0.0.{1 + each % HOSTS}:{receiver.port}{path}"
            wanted = {"callback": "http", "destination": url}
            place = f"/{composite}/streams/out/subscriptions"
            assert platform.request("POST", place, wanted)[0] == 201
        part = UPDATES // (len(KILLS) + 1)
        for at in range(1, UPDATES + 1):
            platform.put(StreamRef(device, "data"), at, v=at)
            if at % part == 0 and at // part <= len(KILLS):
                # While the last of these are on their way.
                some = (at - part // 2) * SUBSCRIPTIONS
                until(lambda some=some: receiver.count() > some, SECONDS)
                program, number = KILLS[at // part - 1]
                os.kill(platform.pids()[program], number)
        until(lambda: receiver.count() >= UPDATES * SUBSCRIPTIONS, SECONDS)

    repeats = [receiver.repeats(path) for path in paths]
    record_property("repeats", sum(repeats))
    record_property("failed", receiver.failed)
    assert receiver.failed
    for path in paths:
        assert receiver.first_times(path) == list(range(1, UPDATES + 1))
        assert len(set(receiver.taken[path])) == UPDATES, "an update has one id"
        assert goes_back(receiver.taken[path]) <= len(KILLS)
    # Each kill repeats the one under way; Postgres forgets what it has not written yet.
    assert max(repeats) <= len(KILLS) + part


def goes_back(taken: list[Taken]) -> int:
    """How often it goes back, to where the cursor stood that was stored last."""
    times = [each.timestamp for each in taken]
    return sum(later <= before for before, later in pairwise(times))
