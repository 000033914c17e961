"""Creating and reading Service Objects."""

from __future__ import annotations

import re
from typing import Any

import pytest
from api_builders import NOW, SIMPLE, Caller, Served
from werkzeug.test import TestResponse

from api.app import create_app
from servioticy.domain.documents import BadDocument
from servioticy.domain.records import AcquireRecord, DefinitionRecord, ReleaseRecord
from servioticy.settings import Settings


def test_create_answers_one_line_with_the_id_first(alice: Caller) -> None:
    """Shell clients split the line at `"` and take field 4."""
    answer = alice.ask("POST", "/", json=SIMPLE)

    assert answer.status_code == 201
    id_ = answer.text.split('"')[3]
    assert answer.text.startswith(f'{{"id":"{id_}","api_token":"')
    assert answer.text.endswith(f'","createdAt":{int(NOW * 1000)}}}')
    assert re.fullmatch(r"[0-9]{13}[0-9a-f]{32}", id_)
    assert answer.headers["Location"] == f"http://127.0.0.1:8080/{id_}"
    assert answer.headers["Server"] == "api.servIoTicy"
    assert answer.headers["Content-Type"] == "application/json"


def test_create_tells_the_log_before_it_answers(served: Served, alice: Caller) -> None:
    so = alice.create()

    assert served.platform.records(0) == [(0, DefinitionRecord(so, 1, 1))]
    assert served.platform.database.rows("SELECT change FROM pending_changes") == []


def test_what_a_body_says_comes_back_but_for_what_is_ours(alice: Caller) -> None:
    document = {
        "userId": "mallory",
        "URL": "http://x",
        "id": "mine",
        **SIMPLE,
        "createdAt": 5,
        "properties": [1, {"a": None}],
        "data": "secret",
        "public": "True",
    }
    so = alice.create(document)

    now = int(NOW * 1000)
    answer = alice.ask("GET", f"/{so}")
    assert answer.get_json() == {
        "id": so,
        "public": "false",
        "createdAt": now,
        "updatedAt": now,
        "URL": "http://x",
        **SIMPLE,
        "properties": [1, {"a": None}],
    }
    assert answer.text.startswith(f'{{"id":"{so}",')
    assert "\n" not in answer.text


def test_own_ids_are_listed(alice: Caller, bob: Caller) -> None:
    ids = [alice.create(), alice.create()]
    bob.create()

    assert alice.ask("GET", "/").get_json() == ids
    assert served_by(alice, "/?size=1&from=2") == ids


def served_by(caller: Caller, path: str) -> Any:
    return caller.ask("GET", path).get_json()


def test_streams_are_listed_with_their_names_in_order(alice: Caller) -> None:
    streams = {
        name: {"type": "sensor", "channels": {"x": {"type": "number"}}} for name in ("b", "a")
    }
    so = alice.create({"streams": streams})

    listed = served_by(alice, f"/{so}/streams/")["streams"]
    assert listed == [{"name": name, **content} for name, content in streams.items()]


def test_no_streams_are_no_content(alice: Caller) -> None:
    so = alice.create({"streams": {}})

    answer = alice.ask("GET", f"/{so}/streams")
    assert (answer.status_code, answer.data) == (204, b"")


@pytest.mark.parametrize("path", ["/nothing", "/nothing/streams", "/nothing/streams/a", "/%00"])
def test_an_unknown_object_is_not_found(alice: Caller, path: str) -> None:
    answer = alice.ask("GET", path)

    assert answer.status_code == 404
    assert answer.get_json()["message"] == "The Service Object was not found."
    assert answer.headers["Server"] == "api.servIoTicy.com"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "No data in the request"),
        (b"{}", "Service Object without streams"),
        (b'{"streams":{"x":{}}}', "stream: x without channels"),
        (b'{"streams":{"x":{"channels":{"c":{}}}}}', "channel c without type info"),
        (b"[]", "The request has to be a JSON object"),
    ],
)
def test_what_is_wrong_with_a_document_is_said(alice: Caller, body: bytes, message: str) -> None:
    answer = alice.ask("POST", "/", data=body)

    assert (answer.status_code, answer.get_json()["message"]) == (400, message)
    assert alice.ask("GET", "/").get_json() == []


def placed(answer: TestResponse) -> tuple[str, str]:
    """What is wrong with a document, and where."""
    content = answer.get_json()
    return content["code"], content["pointer"]


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        (b"{", "not-json", ""),
        (b"[]", "wrong-type", ""),
        (b'{"streams":{},"x":' + b"[" * 300 + b"]" * 300 + b"}", "too-nested", ""),
        (b'{"streams":{},"streams":{}}', "duplicate", "/streams"),
        (b'{"x":[1,{"y":{},"a/b":1,"a/b":2}]}', "duplicate", "/x/1/a~1b"),
        (b'{"streams":{"x":{"channels":{"c":{}}}}}', "required", "/streams/x/channels/c"),
    ],
)
def test_what_is_wrong_with_a_document_is_told_to_programs(
    alice: Caller, body: bytes, code: str, pointer: str
) -> None:
    answer = alice.ask("POST", "/", data=body)

    assert (answer.status_code, *placed(answer)) == (400, code, pointer)


def grouping(so: str, stream: str = "a") -> dict[str, Any]:
    return {"groups": {"g": {"soIds": [so], "stream": stream}}, "streams": {}}


def test_a_group_of_nothing_is_refused(alice: Caller) -> None:
    answer = alice.ask("POST", "/", json=grouping("nothing"))

    message = "The Service Object: nothing does not exist."
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)
    assert placed(answer) == ("unknown-service-object", "/groups/g/soIds")


def test_a_group_of_an_unknown_stream_is_not_found(alice: Caller) -> None:
    so = alice.create()

    answer = alice.ask("POST", "/", json=grouping(so, "nothing"))

    assert answer.status_code == 404
    assert placed(answer) == ("unknown-stream", "/groups/g/stream")


def test_a_group_that_lacks_something_is_404_as_in_the_original(alice: Caller) -> None:
    answer = alice.ask("POST", "/", json={"streams": {}, "groups": {"g": {}}})

    assert answer.status_code == 404
    assert placed(answer) == ("incomplete-group", "/groups/g")


def test_a_group_may_read_public_objects_only(alice: Caller, bob: Caller) -> None:
    private, public = alice.create(), alice.create({**SIMPLE, "public": True})

    assert bob.ask("POST", "/", json=grouping(private)).status_code == 401
    assert bob.ask("POST", "/", json=grouping(public)).status_code == 201


def test_joining_two_components_moves_one(served: Served, alice: Caller) -> None:
    first, second = alice.create(), alice.create()
    groups = {name: {"soIds": [so], "stream": "a"} for name, so in (("f", first), ("s", second))}
    third = alice.create({"groups": groups, "streams": {}})

    assert served.platform.records(1, 1) == [(1, ReleaseRecord((second,), 0))]
    assert served.platform.records(0, 1) == [
        (1, AcquireRecord((second,), 1, 1)),
        (2, DefinitionRecord(third, 1, 3)),
    ]


def test_problems_with_snippets_are_told(served: Served, alice: Caller) -> None:
    """All of them, with the place of the first."""
    problems = [BadDocument(f"{name}: no", f"/streams/{name}", "bad-code") for name in "ab"]
    app = create_app(served.platform.ports, Settings(), check=lambda _tenant, _: problems)

    headers = {"Authorization": alice.token}
    answer = app.test_client().post("/", json=SIMPLE, headers=headers)

    body = answer.get_json()
    assert (body["message"], body["pointer"], body["code"]) == (
        "a: no; b: no",
        "/streams/a",
        "bad-code",
    )
    assert [(each["pointer"], each["detail"]) for each in body["errors"]] == [
        ("/streams/a", "a: no"),
        ("/streams/b", "b: no"),
    ]


def test_a_log_that_does_not_answer_is_503_and_made_up_for(served: Served, alice: Caller) -> None:
    served.platform.state.broker_answers = False
    answer = alice.ask("POST", "/", json=SIMPLE)
    served.platform.state.broker_answers = True

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    assert answer.get_json()["message"] == "the broker does not answer"
    alice.create()
    assert len(served.platform.records(0)) + len(served.platform.records(1)) == 2
