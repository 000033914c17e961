"""What belongs to another tenant is neither shown nor told of by any route."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from api_builders import SIMPLE, Caller, Served
from contract_world import OPERATIONS, World, a_world, examples_with_types

from servioticy.storage.cursors import PostgresCursors

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "error.json").read_text())
OF_THE_ORIGINAL = ("so", "id")
"""Service Objects and subscriptions: of those of others it said 401, of unknown ones 404."""
OURS = ("template", "job", "token", "grant")


@pytest.fixture
def world(served: Served) -> World:
    return a_world(served)


def body(world: World, method: str, path: str) -> dict[str, Any]:
    """One of the bodies that the document shows."""
    for media, value in examples_with_types(method, path).values():
        text = value if isinstance(value, str) else json.dumps(world.named(value))
        return {"data": text, "content_type": media}
    return {}


def named_in(path: str) -> set[str]:
    return {part for part in (*OF_THE_ORIGINAL, *OURS) if f"{{{part}}}" in path}


NAMED = [each for each in OPERATIONS if named_in(each[1])]


@pytest.mark.parametrize(("method", "path"), NAMED, ids=[" ".join(each) for each in NAMED])
def test_what_is_anothers_is_refused(method: str, path: str, world: World, bob: Caller) -> None:
    """What the original did not have is as if it were not there."""
    sent = body(world, method, path)
    answer = bob.ask(method, world.path(method, path), **sent)

    assert 400 <= answer.status_code < 500, answer.text
    jsonschema.validate(answer.get_json(), SCHEMA)
    for part in named_in(path).intersection(OURS):
        nobodys = {**world.names, part: "0" * len(world.names[part])}
        other = bob.ask(method, World(bob, nobodys).path(method, path), **sent)
        assert (answer.status_code, answer.data) == (other.status_code, other.data)


def test_lists_do_not_change_by_what_others_have(served: Served, bob: Caller) -> None:
    lists = [path for method, path in OPERATIONS if method == "GET" and "{" not in path]
    asked = [path for path in lists if path not in ("/private/health",)]
    before = [bob.ask("GET", path).data for path in asked]
    a_world(served)

    assert [bob.ask("GET", path).data for path in asked] == before


@pytest.mark.parametrize("callback", ["http", "pull"])
def test_what_has_become_private_flows_to_nobody_else_any_more(
    callback: str, served: Served, alice: Caller, bob: Caller
) -> None:
    so = alice.create({**SIMPLE, "public": True})
    wanted = {"callback": callback, "destination": "http://example.org/in"}
    made = bob.ask("POST", f"/{so}/streams/a/subscriptions", json=wanted).get_json()["id"]
    cursors = PostgresCursors(served.platform.database)
    before = set(cursors.changes())
    alice.ask("PUT", f"/{so}", json=SIMPLE)

    assert (before, set(cursors.changes())) == ({made}, set())
    for path in ("", "/streams/a", "/streams/a/lastUpdate", "/streams/a/updates"):
        assert bob.ask("GET", f"/{so}{path}").status_code == 401
