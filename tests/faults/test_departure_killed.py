"""A tenant is deleted while its updates are computed, and who removes it is killed meanwhile."""

from __future__ import annotations

import json
import os
import signal
import time

from running_platform import SECONDS_TO_RECOVER, CommandFailedError, RunningPlatform, until

from servioticy.domain.model import StreamRef

OBJECTS, UPDATES = 150, 20
DEVICE = {
    "version": "0.2.0",
    "public": True,
    "streams": {"a": {"channels": {"x": {"type": "number"}}}},
}
CODE = 'function(a){return a.channels.x["current-value"]+1}'
READING = {"channels": {"x": {"type": "number", "current-value": CODE}}}
NAME = "leaving"


def test_all_of_it_goes_and_others_notice_nothing(platform: RunningPlatform) -> None:
    """Its name is free when its last row is gone, which its foreign keys see to."""
    token = platform.command("tenant", "create", NAME).stdout.strip()
    documents = [{**DEVICE, "streams": {**DEVICE["streams"], "b": READING}}] * OBJECTS
    ids = [json.loads(platform.request("POST", "/", each, token)[2])["id"] for each in documents]
    for at in range(1, UPDATES + 1):
        update = {"channels": {"x": {"current-value": at}}, "lastUpdate": at}
        status, *_ = platform.request("PUT", f"/{ids[at]}/streams/a", update, token)
        assert status == 202
    own = StreamRef(platform.create(DEVICE), "a")

    platform.command("tenant", "delete", NAME)
    assert platform.request("GET", "/", token=token)[0] == 403
    for at in (1, 2):
        time.sleep(0.3)  # somewhere within it
        os.kill(platform.pids()["api"], signal.SIGKILL)
        platform.put(own, at, x=at)

    def is_gone() -> bool:
        try:
            again = platform.command("tenant", "create", NAME).stdout.strip()
        except CommandFailedError:
            return False  # it is still being deleted
        return platform.request("GET", "/", token=again)[2] == b"[]"

    until(is_gone, SECONDS_TO_RECOVER)
    assert platform.request("GET", f"/{ids[0]}")[0] == 404
    assert [each["lastUpdate"] for each in platform.updates(own)] == [1, 2]
