"""A patch changes what it names, by the same way as a PUT of the whole document."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from api_builders import SIMPLE, Caller
from werkzeug.test import TestResponse

DOCUMENT = {**SIMPLE, "name": "old", "customFields": {"room": "kitchen", "floor": 1}}


def patch(caller: Caller, so: str, body: Any, **headers: str) -> TestResponse:
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    headers = {"Content-Type": "application/merge-patch+json"} | headers
    return caller.ask("PATCH", f"/{so}", data=content, headers=headers)


def document(caller: Caller, so: str) -> Any:
    return caller.ask("GET", f"/{so}").get_json()


def test_a_patch_changes_what_it_names(alice: Caller) -> None:
    """A new version: the streams have changed."""
    so = alice.create(DOCUMENT)
    before = document(alice, so)

    answer = patch(
        alice, so, {"name": None, "streams": {"b": {"channels": {"y": {"type": "string"}}}}}
    )

    assert (answer.status_code, answer.get_json()["version"]) == (200, 2)
    after = document(alice, so)
    assert "name" not in after
    assert list(after["streams"]) == ["a", "b"]
    assert after["customFields"] == before["customFields"]
    assert after["createdAt"] == before["createdAt"]


def test_custom_fields_alone_make_no_version(alice: Caller) -> None:
    so = alice.create(DOCUMENT)

    answer = patch(alice, so, {"customFields": {"floor": None, "wall": "north"}})

    assert answer.status_code == 200
    assert "version" not in answer.get_json()
    assert document(alice, so)["customFields"] == {"room": "kitchen", "wall": "north"}


def test_fields_of_ours_are_not_changed(alice: Caller, bob: Caller) -> None:
    so = alice.create(DOCUMENT)

    answer = patch(alice, so, {"id": "x", "userId": "bob", "tenant_id": 2, "createdAt": 1})

    assert answer.status_code == 200
    after = document(alice, so)
    assert (after["id"], after["createdAt"] > 1) == (so, True)
    assert bob.ask("GET", f"/{so}").status_code == 401


def test_a_patch_of_something_older_is_refused(alice: Caller) -> None:
    so = alice.create(DOCUMENT)
    tag = alice.ask("GET", f"/{so}").headers["ETag"]

    answers = [patch(alice, so, {"name": name}, **{"If-Match": tag}) for name in ("a", "b")]

    assert [each.status_code for each in answers] == [200, 412]
    assert document(alice, so)["name"] == "a"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'{"a":1,"a":2}', 400),
        (b"{" * 100, 400),
        ({"streams": None}, 400),
        ({"streams": {"a": None}}, 200),
        ({"streams": {"a": {"channels": {"x": {"type": "nmber"}}}}}, 400),
    ],
)
def test_what_makes_no_document_is_refused(body: Any, status: int, alice: Caller) -> None:
    so = alice.create(DOCUMENT)

    assert patch(alice, so, body).status_code == status


def test_only_the_owner_patches_and_only_with_a_merge_patch(alice: Caller, bob: Caller) -> None:
    so = alice.create({**DOCUMENT, "public": True})

    assert patch(bob, so, {"name": "x"}).status_code == 401
    assert patch(alice, "none", {"name": "x"}).status_code == 404
    other = patch(alice, so, {"name": "x"}, **{"Content-Type": "application/json-patch+json"})
    assert other.status_code == 415
    assert document(alice, so)["name"] == "old"
