"""Fleets: objects made from a template, a change rolled out to them, a group that follows them.

The API runs alone, on a Postgres and a broker of its own; nothing is computed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import Any

from benchmarks import ground
from benchmarks.processes import costs
from benchmarks.rest.served import Served, served
from servioticy.client.calls import Call
from servioticy.client.rest import Rest
from servioticy.settings import Settings

CODE = "{$air.channels.t.current-value} > {{limit}} ? {$air.channels.t.current-value} : null"
DOCUMENT: dict[str, Any] = {
    "name": "Thermometer {{number}}",
    "customFields": {"room": {"$parameter": "room"}},
    "streams": {
        "air": {"channels": {"t": {"type": "number", "unit": "degrees"}}},
        "high": {"channels": {"t": {"type": "number", "current-value": CODE}}},
    },
}
PARAMETERS = {
    "number": {"type": "integer"},
    "room": {"type": "string"},
    "limit": {"type": "number", "default": 20},
}
GROUP = {
    "groups": {"kitchens": {"where": {"customFields.room": "kitchen"}, "stream": "air"}},
    "streams": {
        "s": {
            "channels": {
                "t": {"type": "number", "current-value": "{$kitchens.channels.t.current-value}"}
            }
        }
    },
}


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print how long each takes."""
    parser = argparse.ArgumentParser("servioticy bench fleet")
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--members", type=int, default=100, help="of the dynamic group")
    options = parser.parse_args(arguments)
    with served(settings) as api, ground.client(api.settings, api.token) as client:
        _measure(api, client, options.objects, options.members)


def _measure(api: Served, client: Rest, objects: int, members: int) -> None:
    reader = client.create(GROUP)
    template = {"parameters": PARAMETERS, "document": DOCUMENT}
    path = f"/templates/{_ask(client, 'POST', '/templates', template)['id']}"
    sets = [
        {"number": n, "room": "kitchen" if n < members else f"room {n % 100}"}
        for n in range(objects)
    ]
    _timed(api, client, "made", objects, _ask(client, "POST", f"{path}/objects", sets)["job"])
    begun = time.perf_counter()
    while len(_ask(client, "GET", f"/{reader}/groups/kitchens")["members"]) < members:
        time.sleep(0.05)
    print(f"{members} members belong {time.perf_counter() - begun:.2f} s after the last was made")
    changed = template | {"document": {**DOCUMENT, "description": "a change"}}
    _timed(api, client, "changed", objects, _ask(client, "PUT", path, changed)["job"])
    back = _ask(client, "POST", f"{path}/versions/1/activate", {})
    _timed(api, client, "rolled back", objects, back["job"])
    print(f"memory of the API {api.memory():.0f} MB")


def _timed(api: Served, client: Rest, what: str, objects: int, job: str) -> None:
    begun, before = time.perf_counter(), api.used()
    while (found := _ask(client, "GET", f"/jobs/{job}"))["state"] != "done":
        time.sleep(0.1)
    seconds = time.perf_counter() - begun
    print(f"{found['done']} {what} in {seconds:.1f} s, {objects / seconds:,.0f}/s, ", end="")
    print(f"{found['failed']} failed; each {costs(before, api.used(), objects)}", flush=True)


def _ask(client: Rest, method: str, path: str, body: Any = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    return client.run(Call(method, path, lambda answer: answer.json(), content))
