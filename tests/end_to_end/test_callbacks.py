"""HTTP callbacks of a whole platform: what a device sends reaches a receiver."""

from __future__ import annotations

import json
from typing import Any

from flaky_receiver import FlakyReceiver
from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until

DEVICE = {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}


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
