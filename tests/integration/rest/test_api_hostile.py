"""What is sent to do harm is refused with the error body, and shows nothing of others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema
import orjson
import pytest
from api_builders import NOW, SIMPLE, Caller, Platform, Served
from contract_world import OPERATIONS, World, a_world
from werkzeug.test import TestResponse

from api.app import create_app
from sandbox.text import argument_names
from servioticy.domain.records import UpdateRecord
from servioticy.settings import Settings

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "error.json").read_text())
STATEMENT = "'; DELETE FROM streams; --"
NAMES = ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf"]


def refused(answer: TestResponse, *statuses: int) -> None:
    assert answer.status_code in (statuses or range(400, 500)), answer.text
    jsonschema.validate(answer.get_json(), SCHEMA)


def updates(served: Served) -> list[UpdateRecord]:
    platform = served.platform
    found = [each for n in range(platform.log.partitions()) for _, each in platform.records(n)]
    return [each for each in found if isinstance(each, UpdateRecord)]


def sent(value: str, last_update: str = "1") -> bytes:
    text = f'{{"channels":{{"x":{{"current-value":{value}}}}},"lastUpdate":{last_update}}}'
    return text.encode()


@pytest.fixture
def roomy(backend: Platform) -> Served:
    """An API that takes bodies as large as by default."""
    return Served(create_app(backend.ports, Settings(), lambda: NOW, argument_names), backend)


@pytest.fixture
def world(served: Served) -> World:
    return a_world(served)


NO_JSON = {
    "empty": b"",
    "truncated": b'{"streams":{"a":',
    "a trailing comma": b'{"streams":{},}',
    "a byte order mark": b'\xef\xbb\xbf{"streams":{}}',
    "UTF-16": '{"streams":{}}'.encode("utf-16"),
    "invalid UTF-8": b'{"streams":{},"name":"\xff"}',
    "a surrogate in UTF-8": b'{"streams":{},"name":"\xed\xa0\x80"}',
    "NaN": b'{"streams":{},"x":NaN}',
    "Infinity": b'{"streams":{},"x":-Infinity}',
    "beyond all numbers": b'{"streams":{},"x":1e400}',
    "two documents": b'{"streams":{}}{"streams":{}}',
}


TAKES_TEXT = {"/{so}/actuations/{actuation}"}
"""Whatever a device has to say, JSON or not."""


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON)
def test_what_is_no_json_is_refused_wherever_json_is_wanted(
    body: bytes, served: Served, world: World
) -> None:
    before = len(updates(served))
    for (method, path), operation in OPERATIONS.items():
        content = operation.get("requestBody", {}).get("content", {})
        wanted = operation.get("requestBody", {}).get("required")
        media = next((each for each in content if each.endswith("json")), None)
        if media is None or (not body and not wanted) or path in TAKES_TEXT:
            continue
        answer = world.tenant.ask(method, world.path(method, path), data=body, content_type=media)
        assert 400 <= answer.status_code < 500, (method, path, answer.text)
        jsonschema.validate(answer.get_json(), SCHEMA)
    assert len(updates(served)) == before


DEEP = 100_000
LARGE: dict[str, Callable[[], bytes]] = {
    "objects in objects": lambda: b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "arrays in arrays": lambda: b'{"channels":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "a million keys": lambda: b"{" + b",".join(b'"%d":1' % n for n in range(1_000_000)) + b"}",
    "a number of 100,000 digits": lambda: sent("9" * DEEP),
}


@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE)
def test_large_and_deep_bodies_are_refused(make: Callable[[], bytes], roomy: Served) -> None:
    tenant, body = roomy.tenant("alice"), make()
    so = tenant.create()
    for method, path in (("POST", "/"), ("PUT", f"/{so}"), ("PUT", f"/{so}/streams/a")):
        refused(tenant.ask(method, path, data=body))
    refused(tenant.ask("POST", f"/{so}/streams/a/search", data=body))
    assert updates(roomy) == []


@pytest.mark.parametrize(
    "value", ["1e400", "true", "null", '"1"', "[1]", "{}", "01", "+1", "1.", "0x1"]
)
def test_what_is_no_number_does_not_get_into_a_channel_of_numbers(
    value: str, served: Served, alice: Caller
) -> None:
    refused(alice.put(alice.create(), sent(value)), 400)
    assert updates(served) == []


@pytest.mark.parametrize("value", ["-0", "-0.0", "9223372036854775808", "1e308", "5e-324"])
def test_odd_numbers_come_back(value: str, served: Served, alice: Caller) -> None:
    so = alice.create()
    assert alice.put(so, sent(value)).status_code == 202
    served.store()

    (update,) = alice.ask("GET", f"/{so}/streams/a").get_json()["data"]
    assert update["channels"]["x"]["current-value"] == json.loads(value)


@pytest.mark.parametrize(
    "time", ["-1", "1.5", '"1"', "null", "true", "[]", "1e3", "253402300799000", "9" * 30]
)
def test_a_time_that_is_none_is_refused(time: str, served: Served, alice: Caller) -> None:
    """The year 9999 is too far ahead."""
    refused(alice.put(alice.create(), sent("1", time)), 400)
    assert updates(served) == []


def test_names_that_mean_something_in_javascript_are_names(served: Served, alice: Caller) -> None:
    channels = {name: {"type": "number"} for name in NAMES}
    document = {
        "streams": {name: {"channels": channels} for name in NAMES},
        "customFields": {name: {name: 1} for name in NAMES},
    }
    so = alice.create(document)
    for name in NAMES:
        body = {"channels": {name: {"current-value": 1}}, "lastUpdate": 1}
        assert alice.put(so, orjson.dumps(body), name).status_code == 202
    refused(alice.put(so, sent("1"), "__defineGetter__"), 404)
    served.store()

    assert alice.ask("GET", f"/{so}").get_json()["streams"] == document["streams"]
    for name in NAMES:
        (update,) = alice.ask("GET", f"/{so}/streams/{name}").get_json()["data"]
        assert list(update["channels"]) == [name]


STRANGE = [
    *("..", "../..", "%2e%2e%2f", "%00", ";", "'", STATEMENT, "%", "_", "x" * 10_000),
    *("__proto__", "\r\nX: y", "\x1b[31m"),
]


@pytest.mark.parametrize("strange", STRANGE, ids=range(len(STRANGE)))
def test_a_strange_name_is_not_found_in_any_part_of_any_path(strange: str, world: World) -> None:
    """Each part alone, the others leading to what is there."""
    for method, path in OPERATIONS:
        for part in [each for each in world.names if f"{{{each}}}" in path]:
            name = strange if "%" in strange else quote(strange, safe="")
            made = World(world.tenant, world.names | {part: name}).names
            answer = world.tenant.ask(method, path.format_map(made))
            assert 400 <= answer.status_code < 500, (method, path, part, answer.text)
            jsonschema.validate(answer.get_json(), SCHEMA)
    assert world.tenant.ask("GET", f"/{world.names['so']}").status_code == 200


def test_statements_in_every_field_are_text(served: Served, alice: Caller, bob: Caller) -> None:
    other = bob.create()
    text = {"name": STATEMENT, "description": STATEMENT, "customFields": {STATEMENT: STATEMENT}}
    channel = {"type": "string", "unit": STATEMENT}
    so = alice.create({**text, "streams": {"a": {"channels": {"x": channel}}}})
    assert alice.put(so, sent(json.dumps(STATEMENT))).status_code == 202
    served.store()
    search = {"match": True, "matchfield": STATEMENT, "matchstring": STATEMENT}
    found = alice.ask("POST", f"/{so}/streams/a/search", json=search)
    wanted = {"callback": "pubsub", "destination": STATEMENT}
    made = alice.ask("POST", f"/{so}/streams/a/subscriptions", json=wanted)

    assert alice.ask("GET", f"/{so}").get_json()["customFields"] == text["customFields"]
    (update,) = alice.ask("GET", f"/{so}/streams/a").get_json()["data"]
    assert update["channels"]["x"]["current-value"] == STATEMENT
    assert (found.status_code < 500, made.status_code) == (True, 201)
    assert bob.ask("GET", f"/{other}/streams").status_code == 200


PATHS = {
    "10 kB": ".a" * 2_000,
    "a script": "[(@.length-1)]",
    "a call": "[?(alert(1))]",
    "a number without end": "[-" + "9" * 400 + ":]",
    "filters in filters": "[?(@" * 200 + ")]" * 200,
    "a regular expression": ".b[?(@.c=~'(x+x+)+y')]",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_path_that_cannot_be_kept_in_bounds_is_refused(path: str, alice: Caller) -> None:
    code = {"type": "number", "current-value": f"{{$a{path}}}"}
    streams: Any = {**SIMPLE["streams"], "b": {"channels": {"y": code}}}

    refused(alice.ask("POST", "/", json={"streams": streams}), 400)


def reads(*names: str) -> Any:
    """A composite stream of these."""
    code = " + ".join(f"{{${name}.channels.x.current-value}}" for name in names)
    return {"channels": {"x": {"type": "number", "current-value": code}}}


def diamonds(depth: int) -> Any:
    levels = {
        f"{side}{n}": reads(f"l{n - 1}", f"r{n - 1}") for n in range(1, depth) for side in "lr"
    }
    return {"a": SIMPLE["streams"]["a"], "l0": reads("a"), "r0": reads("a"), **levels}


GRAPHS: dict[str, Any] = {
    "itself": {"a": SIMPLE["streams"]["a"], "b": reads("a", "b")},
    "a cycle of 2": {"a": reads("b"), "b": reads("a")},
    "a cycle of 50": {"a": reads("s49"), "s0": reads("a")}
    | {f"s{n}": reads(f"s{n - 1}") for n in range(1, 50)},
    "diamonds 20 deep": diamonds(20),
}


@pytest.mark.parametrize("streams", GRAPHS.values(), ids=GRAPHS)
def test_cycles_and_diamonds_are_taken_and_shown_within_bounds(
    streams: Any, alice: Caller
) -> None:
    """What of two paths comes first counts, so nothing grows with the number of paths."""
    so = alice.create({"streams": streams})
    tree = alice.ask("GET", f"/{so}/streams/a/tree")

    assert tree.status_code == 200
    assert len(tree.data) < 100_000
    assert alice.put(so).status_code == 202
