"""Documents that are saved as versions and not in force, until somebody says so."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import SIMPLE, Caller, Served
from changing_documents import CHANNEL, WIDER, composite, records, replace, versions
from fleet_builders import a_fleet
from werkzeug.test import TestResponse

from servioticy.domain.records import DefinitionRecord
from servioticy.storage import change_store


def save(caller: Caller, so: str, document: Any, **headers: str) -> TestResponse:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return caller.ask("POST", f"/{so}/versions", json=document, headers=names)


def test_a_saved_version_is_kept_and_nothing_is_computed_by_it(
    served: Served, alice: Caller
) -> None:
    so = alice.create()
    before = alice.ask("GET", f"/{so}")

    answer = save(alice, so, WIDER)

    body = answer.get_json()
    assert (answer.status_code, body["version"], body["active"]) == (201, 2, False)
    assert answer.headers["Location"].endswith(f"/{so}/versions/2")
    assert versions(alice, so) == [(1, True), (2, False)]
    now = alice.ask("GET", f"/{so}")
    assert (now.get_json(), now.headers["ETag"]) == (before.get_json(), before.headers["ETag"])
    assert alice.ask("GET", f"/{so}/versions/2").get_json()["streams"] == WIDER["streams"]
    assert len(records(served, DefinitionRecord)) == 1


def test_it_is_put_in_force_as_one_that_was(served: Served, alice: Caller) -> None:
    so = alice.create()
    save(alice, so, WIDER)
    replace(alice, so, {"streams": {"a": {"channels": {"z": CHANNEL}}}})

    answer = alice.ask("POST", f"/{so}/versions/2/activate")

    assert (answer.status_code, answer.get_json()["version"]) == (200, 2)
    assert versions(alice, so) == [(1, False), (2, True), (3, False)]
    assert [each.version for each in records(served, DefinitionRecord)] == [1, 3, 2]
    assert alice.ask("GET", f"/{so}").get_json()["streams"] == WIDER["streams"]


def test_a_stream_of_it_takes_updates_only_once_it_is_in_force(
    served: Served, alice: Caller
) -> None:
    so = alice.create()
    save(alice, so, {"streams": {**SIMPLE["streams"], "b": {"channels": {"x": CHANNEL}}}})
    assert alice.put(so, stream="b").status_code == 404

    alice.ask("POST", f"/{so}/versions/2/activate")

    assert alice.put(so, stream="b").status_code == 202
    served.store()
    assert len(alice.ask("GET", f"/{so}/streams/b").get_json()["data"]) == 1


def test_what_a_put_would_refuse_is_not_saved(alice: Caller, bob: Caller) -> None:
    so, theirs = alice.create(), bob.create()
    wrong = {"streams": {"a": {"channels": {"x": {"type": "nmber"}}}}}

    answer = save(alice, so, wrong)
    assert (answer.status_code, "nmber" in answer.get_json()["message"]) == (400, True)
    assert save(alice, so, {"customFields": 1}).status_code == 400
    assert save(alice, so, composite("g", g=([theirs], "a"))).status_code == 401
    assert save(alice, "nothing", WIDER).status_code == 404
    assert save(bob, so, WIDER).status_code == 401
    assert versions(alice, so) == [(1, True)]


def test_its_warnings_are_those_of_a_put(alice: Caller) -> None:
    so = alice.create()
    alice.create(composite("g", g=([so], "a")))
    changed = {"streams": {"a": {"channels": {"x": {"type": "string"}}}}}

    saved = save(alice, so, changed).get_json()

    assert saved["warnings"] == replace(alice, so, changed).get_json()["warnings"]
    assert "channel x was number and is string now" in " ".join(saved["warnings"])


def test_who_edited_something_else_is_told(alice: Caller) -> None:
    so = alice.create()
    seen = alice.ask("GET", f"/{so}").headers["ETag"]
    replace(alice, so, WIDER)

    assert save(alice, so, WIDER, If_Match=seen).status_code == 412
    assert versions(alice, so) == [(1, False), (2, True)]


def test_a_request_that_is_repeated_saves_once(alice: Caller) -> None:
    so = alice.create()

    answers = [save(alice, so, WIDER, Idempotency_Key="k1") for _ in range(2)]

    assert [each.get_json()["version"] for each in answers] == [2, 2]
    assert versions(alice, so) == [(1, True), (2, False)]


def test_custom_fields_stay_those_of_the_object(alice: Caller) -> None:
    so = alice.create({**SIMPLE, "customFields": {"room": "hall"}})
    save(alice, so, {**WIDER, "customFields": {"room": "cellar"}})

    alice.ask("POST", f"/{so}/versions/2/activate")

    assert alice.ask("GET", f"/{so}").get_json()["customFields"] == {"room": "hall"}


def test_no_version_has_custom_fields(alice: Caller) -> None:
    """Whoever computes would read them with each, and nothing is computed by them."""
    so = alice.create({**SIMPLE, "customFields": {"room": "hall"}})
    save(alice, so, {**WIDER, "customFields": {"room": "cellar"}})

    found = [alice.ask("GET", f"/{so}/versions/{number}").get_json() for number in (1, 2)]

    assert [each["streams"] for each in found] == [SIMPLE["streams"], WIDER["streams"]]
    assert not any("customFields" in each for each in found)


def test_what_others_read_by_then_cannot_go(alice: Caller) -> None:
    so = alice.create({"streams": {**SIMPLE["streams"], "b": {"channels": {}}}})
    save(alice, so, SIMPLE)
    alice.create(composite("g", g=([so], "b")))

    assert alice.ask("POST", f"/{so}/versions/2/activate").status_code == 409


def test_of_many_the_newest_stay_and_the_one_in_force(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_store, "MAX_VERSIONS", 3)
    so = alice.create()
    served.store()

    for number in range(5):
        save(alice, so, {"streams": {"a": {"channels": {f"c{number}": CHANNEL}}}})

    assert versions(alice, so) == [(1, True), (4, False), (5, False), (6, False)]


def test_they_count_as_bytes_of_documents(served: Served, alice: Caller) -> None:
    so = alice.create()
    usage = served.platform.database.row("SELECT sum(bytes) FROM definitions")
    save(alice, so, WIDER)
    after = served.platform.database.row("SELECT sum(bytes) FROM definitions")

    assert usage is not None
    assert after is not None
    assert after[0] > usage[0]


def test_one_that_follows_a_template_is_saved_and_leaves_it_when_in_force(
    served: Served, alice: Caller
) -> None:
    _template, (so,) = a_fleet(served, alice, ["hall"])
    assert save(alice, so, WIDER).status_code == 201

    assert alice.ask("POST", f"/{so}/versions/2/activate").status_code == 409
    assert alice.ask("POST", f"/{so}/versions/2/activate?detach=true").status_code == 200
