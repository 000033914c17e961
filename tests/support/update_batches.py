"""Batches of updates, and what of them is in the log."""

from __future__ import annotations

import json
from typing import Any

from api_builders import Caller, Served
from werkzeug.test import TestResponse

from servioticy.domain.records import UpdateRecord

TWO = {
    "streams": {
        "a": {"channels": {"x": {"type": "number"}, "on": {"type": "boolean"}}},
        "b": {"channels": {"t": {"type": "string"}}},
    }
}


NDJSON, CSV, SENML = "application/x-ndjson", "text/csv", "application/senml+json"


def update(at: Any, value: Any = 1) -> dict[str, Any]:
    return {"channels": {"x": {"current-value": value}}, "lastUpdate": at}


def named(so: str, stream: str, at: int) -> dict[str, Any]:
    return {"serviceObject": so, "stream": stream, "update": update(at)}


def post(caller: Caller, path: str, body: Any, content_type: str = "") -> TestResponse:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": content_type} if content_type else {}
    return caller.ask("POST", path, data=data, headers=headers)


def taken(served: Served) -> list[tuple[str, str, Any]]:
    """What stands in the log: service object, stream, and the update."""
    return [
        (record.service_object, record.stream, json.loads(bytes(record.update)))
        for partition in range(served.platform.log.partitions())
        for _, record in served.platform.records(partition)
        if isinstance(record, UpdateRecord)
    ]
