"""Whom a document lets call with actuations, and the secret that signs it."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import SIMPLE, Caller, Served

ACTIONS = [{"name": "Reboot", "description": "d"}, {"name": "blink now"}]
DOCUMENT = {**SIMPLE, "actions": ACTIONS}
CALLED = {**DOCUMENT, "actuationCallback": {"destination": "https://example.org/lamp"}}


def callbacks(served: Served) -> list[Any]:
    return served.platform.database.rows("SELECT callback, secrets FROM actuation_callbacks")


def test_a_document_may_name_whom_to_call(served: Served, alice: Caller) -> None:
    so = alice.create(CALLED)
    ((callback, secrets),) = callbacks(served)
    assert callback == CALLED["actuationCallback"]
    assert secrets[0]["secret"].startswith("whsec_")

    other = {"destination": "https://example.org/other", "format": "cloudevents"}
    assert (
        alice.ask("PUT", f"/{so}", json={**DOCUMENT, "actuationCallback": other}).status_code
        == 200
    )
    assert callbacks(served) == [(other, secrets)]

    for without in (DOCUMENT, {**DOCUMENT, "actuationCallback": None}):
        alice.ask("PUT", f"/{so}", json=CALLED)
        assert alice.ask("PUT", f"/{so}", json=without).status_code == 200
        assert callbacks(served) == []


def test_a_secret_is_told_once_and_the_one_before_signs_along(
    served: Served, alice: Caller
) -> None:
    so = alice.create(CALLED)
    ((_, before),) = callbacks(served)

    told = alice.ask("POST", f"/{so}/actuation_secret")
    ((_, after),) = callbacks(served)

    assert told.status_code == 201
    assert [each["secret"] for each in after] == [told.get_json()["secret"], before[0]["secret"]]
    assert alice.ask("POST", f"/{alice.create(DOCUMENT)}/actuation_secret").status_code == 404


def test_others_are_not_told_whom_it_calls(alice: Caller, bob: Caller) -> None:
    so = alice.create({**CALLED, "public": True})

    assert "actuationCallback" in alice.ask("GET", f"/{so}").get_json()
    assert "actuationCallback" not in bob.ask("GET", f"/{so}").get_json()
    assert bob.ask("POST", f"/{so}/actuation_secret").status_code == 401


@pytest.mark.parametrize(
    ("callback", "pointer"),
    [
        ("http://example.org", ""),
        ({"destination": "http://example.org", "method": "GET"}, ""),
        ({"destination": "ftp://example.org"}, "/destination"),
        ({"destination": "http://user@example.org"}, "/destination"),
        ({}, ""),
        ({"destination": "http://example.org", "format": "xml"}, "/format"),
        ({"destination": "http://example.org", "customFields": {"body": 1}}, "/customFields/body"),
    ],
)
def test_whom_nobody_can_call_is_refused(alice: Caller, callback: Any, pointer: str) -> None:
    answer = alice.ask("POST", "/", json={**DOCUMENT, "actuationCallback": callback})

    assert answer.status_code == 400
    assert answer.get_json()["pointer"] == f"/actuationCallback{pointer}"
