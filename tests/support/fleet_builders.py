"""Templates, and the fleets that are made from them."""

from __future__ import annotations

from typing import Any

import orjson
from api_builders import Caller, Served

from api.app import SERVICES
from api.background.worker import worker

DOCUMENT = {
    "name": "Thermometer of {{room}}",
    "customFields": {"room": {"$parameter": "room"}, "model": "x1"},
    "streams": {
        "air": {"channels": {"t": {"type": "number"}}},
        "high": {
            "channels": {
                "t": {
                    "type": "number",
                    "current-value": "{$air.channels.t.current-value} - {{limit}}",
                }
            }
        },
    },
}
PARAMETERS = {
    "room": {"type": "string", "example": "kitchen"},
    "limit": {"type": "number", "default": 20},
}
TEMPLATE = {"parameters": PARAMETERS, "document": DOCUMENT}


def post(caller: Caller, path: str, body: Any, status: int = 202, method: str = "POST") -> Any:
    """The answer to a request that ends with this status."""
    answer = caller.ask(method, path, data=orjson.dumps(body))
    assert answer.status_code == status, answer.text
    return answer.get_json()


def get(caller: Caller, path: str) -> Any:
    answer = caller.ask("GET", path)
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def a_template(caller: Caller, content: Any = TEMPLATE) -> str:
    id_: str = post(caller, "/templates", content, 201)["id"]
    return id_


def work(served: Served) -> None:
    """Do all that goes on after requests, however short ago the last look was."""
    while worker(served.app.extensions[SERVICES]).turn():
        pass


def a_fleet(served: Served, caller: Caller, rooms: list[str]) -> tuple[str, list[str]]:
    """A template and the Service Objects made from it, one for each room."""
    template = a_template(caller)
    made = post(caller, f"/templates/{template}/objects", [{"room": each} for each in rooms])
    work(served)
    return template, made["ids"]
