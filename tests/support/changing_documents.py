"""Documents, and how they are changed by the API."""

from __future__ import annotations

from typing import Any

import orjson
from api_builders import Caller, Served
from werkzeug.test import TestResponse

CHANNEL = {"type": "number"}


WIDER = {"streams": {"a": {"channels": {"x": CHANNEL, "y": CHANNEL}}}}


def replace(caller: Caller, so: str, document: Any, **headers: str) -> TestResponse:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return caller.ask("PUT", f"/{so}", data=orjson.dumps(document), headers=names)


def versions(caller: Caller, so: str) -> list[tuple[int, bool]]:
    listed = caller.ask("GET", f"/{so}/versions").get_json()["versions"]
    return [(each["version"], each["active"]) for each in listed]


def composite(names: str, **groups: Any) -> dict[str, Any]:
    code = {"type": "number", "current-value": f"function({names}){{}}"}
    return {
        "version": "0.2.0",
        "groups": {name: {"soIds": so, "stream": stream} for name, (so, stream) in groups.items()},
        "streams": {"out": {"channels": {"v": code}}},
    }


def records(served: Served, kind: type) -> list[Any]:
    return [r for n in (0, 1) for _, r in served.platform.records(n) if isinstance(r, kind)]
