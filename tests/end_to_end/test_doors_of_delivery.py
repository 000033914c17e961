"""Each way into delivery by which one asks for what is sent, for everybody who may not come so.

The doors at which streams are watched are in `tests/integration/test_isolation_of_delivery.py`;
these need the REST API behind them. Those of messages are in `test_doors_of_messages.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx
from doors import DOCUMENT, IN, SECONDS, Doors
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect


def said(doors: Doors, token: str, wanted: dict[str, Any]) -> str:
    """What is answered to a subscription over the one socket for many."""
    headers = {"Authorization": token} if token else {}
    url = f"ws://127.0.0.1:{doors.platform.live_port}/live"
    try:
        with connect(url, additional_headers=headers, proxy=None) as socket:
            socket.send(json.dumps({"do": "subscribe", "id": "1", **wanted}))
            told = json.loads(socket.recv(SECONDS))
            return IN if told["is"] == "subscribed" else str(told["status"])
    except InvalidStatus as refused:
        return str(refused.response.status_code)


def actuations_socket(doors: Doors, token: str) -> str:
    headers = {"Authorization": token} if token else {}
    url = f"ws://127.0.0.1:{doors.platform.live_port}/{doors.so}/actuations/live"
    try:
        with connect(url, additional_headers=headers, proxy=None) as socket:
            assert json.loads(socket.recv(SECONDS))["is"] == "subscribed"
            return IN
    except InvalidStatus as refused:
        return str(refused.response.status_code)


def acknowledgements(doors: Doors, token: str) -> str:
    url = f"http://127.0.0.1:{doors.platform.live_port}/subscriptions/{doors.pull}"
    headers = {"Authorization": token} if token else {}
    answer = httpx.post(
        f"{url}/acknowledgements", json={"id": doors.event}, headers=headers, timeout=SECONDS
    )
    return IN if answer.status_code == 200 else str(answer.status_code)


Door = Callable[[Doors, str], str]
ASKING: Mapping[str, Door] = {
    "actuations live": actuations_socket,
    "live actions": lambda d, token: said(d, token, {"serviceObject": d.so, "actions": True}),
    "live whole object": lambda d, token: said(d, token, {"serviceObject": d.so}),
    "live group": lambda d, token: said(d, token, {"serviceObject": d.so, "group": "g"}),
    "acknowledgements": acknowledgements,
}
OTHERS: Mapping[str, Mapping[str, str]] = {
    "actuations live": {"another tenant": "401"},
    "live actions": {"another tenant": "401"},
    "live whole object": {"another tenant": "401"},
    "live group": {"another tenant": "401"},
    "acknowledgements": {"another tenant": "404"},
}
"""Who is answered with something else than 403."""


def test_whoever_may_not_is_refused_at_every_door(doors: Doors) -> None:
    group = {"groups": {"g": {"soIds": [doors.so], "stream": "data"}}, "version": "0.2.0"}
    reader = {"channels": {"v": {"type": "number", "current-value": "function(g) { return 1 }"}}}
    streams = {**DOCUMENT["streams"], "read": reader}
    doors.asked("PUT", f"/{doors.so}", DOCUMENT | group | {"streams": streams})
    found = {
        (door, who): enter(doors, token)
        for door, enter in ASKING.items()
        for who, token in doors.tokens.items()
    }

    assert found == {
        (door, who): IN if who == "the owner" else OTHERS[door].get(who, "403")
        for door, who in found
    }
