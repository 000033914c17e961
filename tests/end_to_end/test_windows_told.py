"""Who follows windows that are told more than once gets every mark, in order."""

from __future__ import annotations

import json
import threading
from typing import Any

from flaky_receiver import FlakyReceiver
from running_platform import RunningPlatform, until

from command import found
from servioticy.domain.model import StreamRef
from servioticy.settings import load
from servioticy.storage.database import Database
from servioticy.storage.tenants import PostgresTenants

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


BILL = {
    "version": "0.2.0",
    "public": "true",
    "streams": {
        "meter": {"channels": {"v": {"type": "number"}}},
        "price": {"channels": {"v": {"type": "number"}}},
        "hour": {
            "window": {"type": "tumbling", "size": "10s", "idle": "1h", "lateness": "1m"},
            "channels": {
                "v": {"type": "number", "current-value": "function(meter){return meter.sum('v')}"}
            },
        },
        "cost": {
            "follow": True,
            "missing": "skip",
            "channels": {
                "v": {
                    "type": "number",
                    "current-value": "function(hour, price)"
                    "{return iot.value(hour, 'v') * iot.value(price, 'v')}",
                }
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
        assert [each for each in kept if each[0] > 0] == sessions[-1:], "what was taken back goes"


def test_what_follows_is_told_again_for_then_by_what_else_was_known_then(
    platform: RunningPlatform,
) -> None:
    id_ = platform.create(BILL)
    meter, price, cost = (StreamRef(id_, each) for each in ("meter", "price", "cost"))
    got: list[dict[str, Any]] = []
    follower = platform.follow(cost)

    def listen() -> None:
        for each in follower.updates():
            got.append(json.loads(each))

    threading.Thread(target=listen, name="following", daemon=True).start()
    platform.put(price, BASE - 5000, v=5)
    for at, value in ((1000, 2), (12_000, 0)):
        platform.put(meter, BASE + at, v=value)
    assert [marked(each) for each in platform.updates(cost)] == [(9_999, 10, None)]
    platform.put(price, BASE + 20_000, v=7)
    platform.put(meter, BASE + 3000, v=3)

    kept = [marked(each) for each in platform.updates(cost)]
    assert kept == [(9_999, 25, 1), (20_000, 14, None)]
    until(lambda: len(got) >= 3, 60)
    assert [marked(each) for each in got] == [
        (9_999, 10, None),
        (20_000, 14, None),
        (9_999, 25, 1),
    ]
    status, _headers, body = platform.request("GET", f"/{id_}/streams/cost/lastUpdate")
    assert status == 200
    assert marked(json.loads(body)["data"][0]) == kept[-1], "the last one is what it was"


def test_a_neighbour_that_follows_is_told_again_over_the_border(platform: RunningPlatform) -> None:
    """And who only reads is not."""
    database = Database(found.of(load({}, {"data": str(platform.data)})).store.dsn)
    token = PostgresTenants(database).create_tenant("a neighbour that follows")
    database.close()
    id_ = platform.create(BILL)
    code = "function(hour){return 2 * iot.value(hour, 'v')}"
    channels = {"v": {"type": "number", "current-value": code}}
    wanted = {
        "version": "0.2.0",
        "groups": {"hour": {"soIds": [id_], "stream": "hour"}},
        "streams": {
            "follows": {"follow": True, "channels": channels},
            "reads": {"channels": channels},
        },
    }
    status, _, body = platform.request("POST", "/", wanted, token)
    assert status == 201, body
    reader = json.loads(body)["id"]

    def told(path: str) -> Any:
        status, _, body = platform.request("GET", f"/{reader}/streams/{path}", token=token)
        return json.loads(body) if status == 200 else {}

    def is_fed() -> bool:
        inputs = told("follows/status").get("fromOutside", {}).get("inputs", ())
        return [each["state"] for each in inputs] == ["open"]

    def kept(stream: str) -> list[tuple[Any, ...]]:
        return [marked(each) for each in told(stream).get("data", ())]

    until(is_fed, 60)
    meter = StreamRef(id_, "meter")
    for at, value in ((1000, 2), (12_000, 0)):
        platform.put(meter, BASE + at, v=value)
    until(lambda: kept("follows") == kept("reads") == [(9_999, 4, None)], 60)
    for at, value in ((3000, 3), (4000, 1), (23_000, 0)):
        platform.put(meter, BASE + at, v=value)
    until(lambda: (19_999, 0, None) in kept("reads"), 60)
    until(lambda: (19_999, 0, None) in kept("follows"), 60)

    assert kept("follows") == [(9_999, 12, 2), (19_999, 0, None)]
    assert kept("reads") == [(9_999, 4, None), (19_999, 0, None)]
