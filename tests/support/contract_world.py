"""A tenant with what the examples of the OpenAPI document talk about, made by these examples."""

from __future__ import annotations

import base64
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import orjson
from api_builders import NOW, Caller, Served
from operator_folders import write
from werkzeug.test import TestResponse

from operators import archives
from schemas import contracts
from servioticy.storage.callback_tests import PostgresCallbackTests

Route = tuple[str, str]
"""A method and a path, as the OpenAPI document names them."""

OPENAPI = contracts.openapi()
OPERATIONS = contracts.operations(OPENAPI)
NOW_MS = int(NOW * 1000)
EXAMPLE_ID = OPENAPI["components"]["parameters"]["so"]["example"]
"""The Service Object that examples name; a test puts in the one that it has made."""
COMPUTED = {
    "streams": {
        "celsius": {"channels": {"t": {"type": "number"}}},
        "fahrenheit": {
            "channels": {
                "f": {
                    "type": "number",
                    "current-value": "{$celsius.channels.t.current-value} * 1.8 + 32",
                }
            }
        },
    }
}
"""A Service Object with a stream that is computed, and can be filled."""
OPERATED = {
    "streams": {
        "payments": {"channels": {"amount": {"type": "number"}}},
        "suspicious": {
            "operator": {"name": "forward", "version": 1},
            "channels": {"amount": {"type": "number"}},
        },
    }
}
"""One with a stream that a program computes."""
ARCHIVE = "application/gzip"
"""What the document shows in base64."""
EXAMPLE_CODE = "7K3QM-2F9XW-D4HTA-Q8RZV"


@dataclass(frozen=True)
class World:
    """A Service Object with one update that is stored, a subscription, and their tenant."""

    tenant: Caller
    names: dict[str, str]
    """what to put into a path for each of its parameters"""

    def path(self, method: str, path: str) -> str:
        """The path of an operation, leading to what is there."""
        asked = {"actuation": "reboot"} if method == "POST" else {}
        if path.endswith("/backfill") and "filled" in self.names:
            asked |= {"so": self.names["filled"], "s": "fahrenheit"}
        if (method, path) == ("DELETE", "/jobs/{job}") and "backfill" in self.names:
            asked["job"] = self.names["backfill"]
        if path.endswith("/state") and "operated" in self.names:
            asked |= {"so": self.names["operated"], "s": "suspicious"}
        return path.format_map(self.names | asked)

    def query(self, operation: dict[str, Any]) -> dict[str, Any]:
        """The examples of an operation's parameters."""
        parameters = [resolved(each) for each in operation.get("parameters", [])]
        return {
            each["name"]: each["example"]
            for each in parameters
            if each["in"] == "query" and "example" in each
        }

    def named(self, value: Any) -> Any:
        """An example that names what this world has in the place of its own."""
        text = orjson.dumps(value).decode()
        for example, name in ((EXAMPLE_ID, "so"), (EXAMPLE_CODE, "code")):
            text = text.replace(example, self.names[name])
        return orjson.loads(text)


def a_world(served: Served) -> World:
    """Make it of the examples of the document itself."""
    tenant = served.tenant("examples")
    so = tenant.create(request_examples("POST", "/")["thermometer"])
    names = {"so": so, "s": "celsius", "n": "1", "id": "", "asset": "page.js"}
    world = World(tenant, names)
    stream = f"/{so}/streams/celsius"
    update = request_examples("PUT", "/{so}/streams/{s}")["temperature"]
    assert tenant.ask("PUT", stream, json=update).status_code == 202
    wanted = request_examples("POST", "/{so}/streams/{s}/subscriptions")["http"]
    answer = tenant.ask("POST", f"{stream}/subscriptions", json=wanted)
    names["id"] = answer.get_json()["id"]
    assert tenant.ask("POST", f"/subscriptions/{names['id']}/test").status_code == 202
    tests = PostgresCallbackTests(served.platform.database)
    for each in tests.take(1, NOW_MS):
        tests.answered(each, 200, "OK", 12)
    answer = tenant.ask("POST", f"/{so}/actuations/reboot", data="", content_type="text/plain")
    names["actuation"] = answer.get_json()["id"]
    content = request_examples("POST", "/templates")["thermometers"]
    names["template"] = tenant.ask("POST", "/templates", json=content).get_json()["id"]
    answer = tenant.ask("PUT", f"/templates/{names['template']}", json=content)
    content = request_examples("POST", "/workflows")["cleaning"]
    names["workflow"] = tenant.ask("POST", "/workflows", json=content).get_json()["id"]
    names |= {"job": answer.get_json()["job"], "group": "others"}
    wanted = {"devices": ["attic", "kitchen-1"], "deviceAs": "room"}
    answer = tenant.ask("POST", f"/templates/{names['template']}/claim-codes", json=wanted)
    (made,) = answer.get_json()["claimCodes"]
    names |= {"claim_code": made["id"], "code": made["code"]}
    names["token"] = tenant.ask("POST", "/tokens", json={"name": "one"}).get_json()["id"]
    member = {"subject": "bob of the examples", "role": "developer"}
    names["member"] = tenant.ask("POST", "/members", json=member).get_json()["id"]
    given = request_examples("POST", "/{so}/streams/{s}/grants")
    (wanted,) = given.values()
    names["grant"] = tenant.ask("POST", f"{stream}/grants", json=wanted).get_json()["id"]
    names["filled"] = tenant.create(COMPUTED)
    wanted = {"serviceObject": names["filled"], "stream": "fahrenheit"}
    answer = tenant.ask("POST", "/monitoring/aspects", json=wanted)
    names["aspect"] = answer.get_json()["id"]
    path = f"/{names['filled']}/streams/fahrenheit/backfill"
    names["backfill"] = tenant.ask("POST", path, json={"from": 0, "to": 1}).get_json()["job"]
    with tempfile.TemporaryDirectory() as folder:
        archive = archives.pack(write(Path(folder) / "operator", "", name="forward"))
    answer = tenant.ask("PUT", "/operators/forward", data=archive)
    assert answer.status_code == 201, answer.text
    names |= {"operator": "forward", "application": "loop", "trace": "a" * 32}
    names["tenant"] = served.tenant("another").ask("GET", "/grants").get_json()["tenant"]
    names["operated"] = tenant.create(OPERATED)
    granted = tenant.ask("PUT", f"/operators/forward/grants/{names['tenant']}")
    assert granted.status_code == 204, granted.text
    served.store()
    return world


def request_examples(method: str, path: str) -> dict[str, Any]:
    """The bodies that the document shows for an operation, by their names."""
    return {name: each for name, (_media, each) in examples_with_types(method, path).items()}


def examples_with_types(method: str, path: str) -> dict[str, tuple[str, Any]]:
    """These bodies, each with its media type."""
    content = OPERATIONS[method, path].get("requestBody", {}).get("content", {})
    return {
        name: (media, example["value"])
        for media, each in content.items()
        for name, example in each.get("examples", {}).items()
    }


def response(operation: dict[str, Any], status: int) -> dict[str, Any]:
    """What the document says of an answer with this status."""
    return resolved(operation["responses"][str(status)])


def resolved(value: dict[str, Any]) -> dict[str, Any]:
    """The value itself, or what it refers to."""
    while "$ref" in value and len(value) == 1:
        found: Any = OPENAPI
        for step in value["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        value = found
    return value


def validate(value: Any, schema: dict[str, Any], document: dict[str, Any] = OPENAPI) -> None:
    """Raise where a value does not fit a schema, which refers to others of its document."""
    whole = {"components": document["components"], "allOf": [schema]}
    jsonschema.Draft202012Validator(whole).validate(value)


def ask(caller: Caller, route: Route, names: dict[str, str]) -> TestResponse:
    """The operation with an example of its body and its query, on what is named."""
    world = World(caller, names)
    query = world.query(OPERATIONS[route])
    return caller.ask(route[0], world.path(*route), query_string=query, **body(world, route))


def body(world: World, route: Route) -> dict[str, Any]:
    """The last of the bodies that the document shows, and its type."""
    for media, value in reversed(examples_with_types(*route).values()):
        if media == ARCHIVE:
            return {"content_type": media, "data": base64.b64decode(value)}
        text = value if isinstance(value, str) else json.dumps(world.named(value))
        return {"content_type": media, "data": text}
    return {}
