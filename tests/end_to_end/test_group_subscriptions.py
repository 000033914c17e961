"""A subscription to a dynamic group hears members that come while it runs."""

from __future__ import annotations

import json

import httpx
from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until

from servioticy.domain.model import StreamRef


def test_a_member_that_comes_is_heard_from_its_first_update(platform: RunningPlatform) -> None:
    """It sends at once: before it belongs, and before delivery knows."""
    device = {"streams": {"celsius": {"channels": {"v": {"type": "number"}}}}}
    where = {"where": {"customFields.room": "cellar"}, "stream": "celsius"}
    first = platform.create(device | {"customFields": {"room": "cellar"}})
    reader = platform.create(
        {
            "groups": {"g": where},
            "streams": {
                "copy": {
                    "channels": {
                        "v": {"type": "number", "current-value": "{$g.channels.v.current-value}"}
                    }
                }
            },
        }
    )
    path = f"/{reader}/groups/g/subscriptions"
    status, _, body = platform.request("POST", path, {"callback": "pull"})
    assert status == 201, body
    updates = (
        f"http://127.0.0.1:{platform.live_port}/subscriptions/{json.loads(body)['id']}/updates"
    )
    got: list[tuple[str, int]] = []
    cursor: dict[str, str] = {}

    def has_all(*wanted: tuple[str, int]) -> bool:
        answer = httpx.get(
            updates,
            params={"wait": "1"} | cursor,
            headers={"Authorization": platform.token},
            timeout=30,
        )
        found = answer.json()
        if found["cursor"]:
            cursor["cursor"] = found["cursor"]
        got.extend(
            (each["serviceObject"], each["update"]["lastUpdate"]) for each in found["updates"]
        )
        return set(wanted) <= set(got)

    platform.put(StreamRef(first, "celsius"), 1, v=1)
    second = platform.create(device | {"customFields": {"room": "cellar"}})
    for at in (1, 2, 3):
        platform.put(StreamRef(second, "celsius"), at, v=at)
    until(lambda: has_all((first, 1), *((second, at) for at in (1, 2, 3))), SECONDS_TO_RECOVER)
    platform.request("DELETE", f"/{second}")
    platform.put(StreamRef(first, "celsius"), 2, v=2)
    until(lambda: has_all((first, 2)), SECONDS_TO_RECOVER)

    assert {name for name, _at in got} == {first, second}
