"""Service Objects whose stored documents a stricter release does not understand any more."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from api_builders import SIMPLE, UPDATE, Caller, Served

STRICTER = {"streams": {"a": {"channels": {"x": {"type": "numeric"}}}, "b": {"channels": {}}}}


@pytest.fixture
def stricter(served: Served, alice: Caller) -> str:
    """A Service Object of another version's document, the rules of which have changed since."""
    id_ = alice.create(SIMPLE)
    put = alice.ask("PUT", f"/{id_}", data=orjson.dumps({**SIMPLE, "name": "another"}))
    assert put.get_json()["version"] == 2
    served.platform.put_document(id_, served.platform.document(id_, 2) | STRICTER, 2)
    return id_


def test_reads_of_it_are_answered(stricter: str, alice: Caller) -> None:
    assert alice.ask("GET", f"/{stricter}").get_json()["streams"] == STRICTER["streams"]
    names = alice.ask("GET", f"/{stricter}/streams").get_json()["streams"]
    assert [each["name"] for each in names] == ["a", "b"]
    assert alice.ask("GET", f"/{stricter}/streams/a/tree").get_json()["levels"] == []


def test_updates_of_it_follow_the_declared_names(stricter: str, alice: Caller) -> None:
    """Of its types nothing is known any more."""
    unheard = UPDATE.replace(b'"x"', b'"y"')

    assert alice.put(stricter, UPDATE).status_code == 202
    assert alice.put(stricter, UPDATE.replace(b":1}}", b':"text"}}')).status_code == 202
    assert alice.put(stricter, unheard).status_code == 400


def test_it_is_changed_as_any_other(stricter: str, alice: Caller) -> None:
    changed = alice.ask("PUT", f"/{stricter}", data=orjson.dumps({**SIMPLE, "name": "new"}))

    assert (changed.status_code, changed.get_json()["version"]) == (200, 3)


def test_it_is_not_put_in_force_again(stricter: str, alice: Caller) -> None:
    """Nothing of it would compute, and nobody would be told."""
    body: Any = {**SIMPLE, "name": "new"}
    alice.ask("PUT", f"/{stricter}", data=orjson.dumps(body))
    again = alice.ask("POST", f"/{stricter}/versions/2/activate")

    assert again.status_code == 400
    assert again.get_json()["code"] == "not-understood"
    assert "cannot be computed any more: Channel x with incorrect type" in again.text


def test_others_are_told_of_their_own_documents(stricter: str, alice: Caller) -> None:
    """Whoever subscribes to it is looked at with it."""
    group = {"g": {"soIds": [stricter], "stream": "a"}}
    code = {"type": "number", "current-value": "function(g){}"}
    document = {"version": "0.2.0", "groups": group, "streams": {"o": {"channels": {"v": code}}}}

    assert alice.ask("POST", "/", data=orjson.dumps(document)).status_code == 201
