"""A private device of a running platform, and everybody who may want to come to it."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from running_platform import RunningPlatform
from waiting import until

from servioticy.domain.model import StreamRef

SECONDS = 60.0
IN = "in"
DOCUMENT: dict[str, Any] = {
    "streams": {"data": {"channels": {"v": {"type": "number"}}}},
    "actions": [{"name": "open"}],
    "public": False,
}
OUT = "doors"
"""The destination of a subscription of the owner."""


@dataclass
class Doors:
    """A private device of the platform's tenant, and who comes to it."""

    platform: RunningPlatform
    so: str
    pull: str
    event: str
    """Of the subscription `pull`."""
    tokens: dict[str, str]
    made: int = 0

    def asked(self, method: str, path: str, body: Any = None) -> Any:
        status, _, answer = self.platform.request(method, path, body)
        assert status < 300, answer
        return json.loads(answer) if answer else None

    def token(self, **wanted: Any) -> tuple[str, str]:
        """Another token of the owner, and its id."""
        made = self.asked("POST", "/tokens", {"name": "n", **wanted})
        return made["token"], made["id"]

    def actuation(self) -> str:
        found: str = self.asked("POST", f"/{self.so}/actuations/open")["id"]
        return found

    def update(self) -> bytes:
        """One that nobody has sent."""
        self.made += 1
        document = {"channels": {"v": {"current-value": 1}}, "lastUpdate": self.made}
        return json.dumps(document).encode()


@pytest.fixture(scope="session")
def doors(platform: RunningPlatform) -> Doors:
    so, other = platform.create(DOCUMENT), platform.create(DOCUMENT)
    made = Doors(platform, so, "", "", {"the owner": platform.token})
    made.pull = made.asked("POST", f"/{so}/streams/data/subscriptions", {"callback": "pull"})["id"]
    service = {"callback": "service", "destination": OUT}
    made.asked("POST", f"/{so}/streams/data/subscriptions", service)
    platform.put(StreamRef(so, "data"), 1_000_000, v=1)
    url = f"http://127.0.0.1:{platform.live_port}/subscriptions/{made.pull}/updates?wait=30"

    def given() -> bool:
        answer = httpx.get(url, headers={"Authorization": platform.token}, timeout=SECONDS)
        made.event = answer.json().get("cursor", "") if answer.status_code == 200 else ""
        return bool(made.event)

    until(given, SECONDS)
    revoked, id_ = made.token()
    made.asked("DELETE", f"/tokens/{id_}")
    made.tokens |= {
        "another tenant": platform.command("tenant", "create", uuid.uuid4().hex).stdout.strip(),
        "nobody": "",
        "forged": "x" * 43,
        "revoked": revoked,
        "expired": made.token(expiresIn=1)[0],
        "of another object": made.token(serviceObject=other)[0],
        "without the right": made.token(rights=["read", "list", "create", "change"])[0],
    }
    until(lambda: _status(made, made.tokens["expired"]) == 403, SECONDS)
    return made


def _status(doors: Doors, token: str) -> int:
    return doors.platform.request("GET", f"/{doors.so}", token=token)[0]
