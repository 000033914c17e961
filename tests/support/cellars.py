"""A cellar whose air is measured for a day, and what is derived of it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from running_platform import RunningPlatform, until

SECONDS = 120.0
STEP = 20_000
"""Milliseconds between two updates."""
COUNT = 2_000
"""More than a page of history has: a plot of all has to ask for aggregates."""
CODE = (
    "function(device) { var value = iot.value(device, 'temperature'); "
    "if (value > 40) return value.no.such; return value > 23 ? null : value * 1.8 + 32 }"
)


class Cellar:
    """Two Service Objects of one tenant."""

    def __init__(self, platform: RunningPlatform, token: str) -> None:
        self.platform = platform
        self.token = token
        self.sent = 0
        self.newest = int(time.time() * 1000) - STEP
        channels = {"temperature": {"type": "number", "unit": "Cel"}, "door": {"type": "boolean"}}
        self.device = self.ask(
            "POST", "/", {"name": "Cellar", "streams": {"air": {"channels": channels}}}
        )["id"]
        derived = {"type": "number", "unit": "F", "current-value": CODE}
        document = {
            "version": "0.2.0",
            "name": "Cellar: in Fahrenheit",
            "groups": {"device": {"soIds": [self.device], "stream": "air"}},
            "streams": {"fahrenheit": {"channels": {"fahrenheit": derived}}},
        }
        self.derived = self.ask("POST", "/", document)["id"]
        self.subscribe({"callback": "pubsub", "destination": "display"})

    def create(self, name: str, streams: int) -> str:
        """Make another device with so many streams; return its id."""
        stream = {"channels": {"v": {"type": "number"}}}
        document = {"name": name, "streams": {f"s{number}": stream for number in range(streams)}}
        id_: str = self.ask("POST", "/", document)["id"]
        return id_

    def create_alarms(self) -> None:
        """Make three streams of what the device sends: each ends otherwise."""
        ends = {"loud": "return 1", "silent": "return null", "broken": "return air.no.such.thing"}
        streams = {
            name: {
                "channels": {"v": {"type": "number", "current-value": f"function(air) {{{code}}}"}}
            }
            for name, code in ends.items()
        }
        groups = {"air": {"soIds": [self.device], "stream": "air"}}
        self.ask(
            "POST",
            "/",
            {"version": "0.2.0", "name": "Alarms", "groups": groups, "streams": streams},
        )

    def subscribe(self, wanted: dict[str, Any]) -> str:
        """Subscribe to what the device sends; return the id."""
        path = f"/{self.device}/streams/air/subscriptions"
        id_: str = self.ask("POST", path, wanted)["id"]
        return id_

    def send_history(self) -> None:
        """Send all of them, and wait until what is derived is stored."""
        first = self.newest - (COUNT - 1) * STEP
        updates = [_update(first + number * STEP, 20 + number % 7 / 2) for number in range(COUNT)]
        for begin in range(0, COUNT, 1_000):
            batch = updates[begin : begin + 1_000]
            self.ask("POST", f"/{self.device}/streams/air/updates", batch)
        self.sent += COUNT
        until(lambda: sum(self.status().values()) >= COUNT, SECONDS)

    def send(self, timestamp: int, temperature: float) -> None:
        """Send one more."""
        self.sent += 1
        body = _update(timestamp, temperature)
        self.ask("PUT", f"/{self.device}/streams/air", body)

    def status(self) -> dict[str, int]:
        """How often computations have ended how."""
        told = self.ask("GET", f"/{self.derived}/streams/fahrenheit/status")
        return {each["verdict"]: each["count"] for each in told["verdicts"]}

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return what the API answers to the tenant, which has to be good."""
        status, _, answer = self.platform.request(method, path, body, self.token)
        assert status < 300, answer
        return json.loads(answer)


def _update(timestamp: int, temperature: float) -> dict[str, Any]:
    channels = {"temperature": {"current-value": temperature}, "door": {"current-value": False}}
    return {"channels": channels, "lastUpdate": timestamp}


@pytest.fixture
def cellar(fresh: str, platform: RunningPlatform) -> Cellar:
    return Cellar(platform, fresh)
