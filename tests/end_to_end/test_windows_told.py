"""Who follows windows that are told more than once gets every mark, in order."""

from __future__ import annotations

import json
import threading
from typing import Any

from flaky_receiver import FlakyReceiver
from running_platform import RunningPlatform, until

from servioticy.domain.model import StreamRef

BASE = 1_700_000_000_000
"""A whole minute, in ms."""

DOCUMENT = {
    "version": "0.2.0",
    "streams": {
        "data": {"channels": {"v": {"type": "number"}}},
        "out": {
            "window": {
                "type": "tumbling",
                "size": "10s",
                "idle": "1h",
                "emit": {"when": "data.sum('v') > 2"},
                "lateness": "20s",
                "revisions": "retract",
            },
            "channels": {
                "sum": {"type": "number", "current-value": "function(data){return data.sum('v')}"}
            },
        },
        "visits": {
            "window": {"type": "session", "gap": "5s", "idle": "1h", "lateness": "1m"},
            "channels": {
                "n": {"type": "number", "current-value": "function(data){return data.count}"}
            },
        },
    },
}


def marked(update: dict[str, Any]) -> tuple[Any, ...]:
    """Its time and value, and all that it says of itself."""
    (channel,) = update["channels"].values()
    marks = [each for each in ("early", "retracted") if update.get(each)]
    return (
        update["lastUpdate"] - BASE,
        channel["current-value"],
        update.get("revision"),
        *marks,
    )


def test_sockets_and_callbacks_get_revisions_and_what_is_early_or_retracted_in_order(
    platform: RunningPlatform,
) -> None:
    id_ = platform.create(DOCUMENT)
    out, visits, data = (StreamRef(id_, each) for each in ("out", "visits", "data"))
    got: list[dict[str, Any]] = []
    follower = platform.follow(out)

    def listen() -> None:
        for each in follower.updates():
            got.append(json.loads(each))

    threading.Thread(target=listen, name="follower", daemon=True).start()
    bodies: list[dict[str, Any]] = []

    def noted(said: dict[str, Any]) -> int:
        bodies.append(said)
        return int(said["lastUpdate"])

    with FlakyReceiver(number=noted) as receiver:
        for each in (out, visits):
            wanted = {"callback": "http", "destination": f"http://127.0.0.1:{receiver.port}/in"}
            path = f"/{id_}/streams/{each.stream}/subscriptions"
            status, _, body = platform.request("POST", path, wanted)
            assert status == 201, body
        platform.put(data, BASE - 40_000, v=0)
        platform.put(data, BASE - 20_000, v=0)
        until(lambda: bool(got), 60)  # it is connected
        for at, value in ((1000, 1), (2000, 2), (3000, 4), (12_000, 0), (4000, 5), (7000, 0)):
            platform.put(data, BASE + at, v=value)

        def called(stream: str) -> list[tuple[Any, ...]]:
            some = [each for each in bodies if next(iter(each["channels"])) == stream]
            return [marked(each) for each in some if each["lastUpdate"] > BASE]

        expected = [
            (9_999, 3, 2, "early"),
            (9_999, 3, 2, "early", "retracted"),
            (9_999, 7, None),
            (9_999, 7, 3, "retracted"),
            (9_999, 12, 4),
            (9_999, 12, 4, "retracted"),
            (9_999, 12, 5),
        ]
        until(lambda: len(called("sum")) >= len(expected), 60)
        until(lambda: len(got) >= len(expected), 60)
        assert called("sum") == expected
        assert [marked(each) for each in got if each["lastUpdate"] > BASE] == expected
        assert [marked(each) for each in platform.updates(out)[-1:]] == expected[-1:]

        sessions = [
            (7_999, 3, None),
            (7_999, 3, 3, "retracted"),
            (8_999, 4, None),
            (8_999, 4, 4, "retracted"),
            (11_999, 5, None),
        ]
        until(lambda: len(called("n")) >= len(sessions), 60)
        assert called("n") == sessions
        kept = [marked(each) for each in platform.updates(visits)]
        assert [each for each in kept if each[0] > 0] == sessions[1::2] + sessions[-1:]
