"""Changes of something older are refused."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import Caller
from changing_documents import WIDER, replace


def test_the_etag_changes_with_every_change(alice: Caller) -> None:
    so = alice.create()
    tags = [alice.ask("GET", f"/{so}").headers["ETag"]]
    for body in ({"customFields": 1}, WIDER, {"customFields": 2}):
        tags.append(replace(alice, so, body).headers["ETag"])
        assert alice.ask("GET", f"/{so}").headers["ETag"] == tags[-1]
    tags.append(alice.ask("POST", f"/{so}/versions/1/activate").headers["ETag"])

    assert tags == ['"1-1"', '"1-2"', '"2-3"', '"2-4"', '"1-5"']


@pytest.mark.parametrize("body", [WIDER, {"customFields": 1}])
def test_a_change_of_something_older_is_refused(alice: Caller, body: Any) -> None:
    so = alice.create()
    seen = alice.ask("GET", f"/{so}").headers["ETag"]
    assert replace(alice, so, {"customFields": 0}, If_Match=seen).status_code == 200

    answer = replace(alice, so, body, If_Match=seen)

    assert answer.status_code == 412
    assert answer.headers["ETag"] == '"1-2"'
    assert '"1-2" is there now' in answer.get_json()["message"]
    assert alice.ask("GET", f"/{so}").get_json()["customFields"] == 0
    assert replace(alice, so, body, If_Match=f'"9-9", {answer.headers["ETag"]}').status_code == 200
    assert replace(alice, so, body, If_Match="*").status_code == 200


def test_deleting_and_activating_heed_if_match_too(alice: Caller) -> None:
    so = alice.create()
    replace(alice, so, WIDER)
    old = {"If-Match": '"1-1"'}

    assert alice.ask("DELETE", f"/{so}", headers=old).status_code == 412
    activate = f"/{so}/versions/1/activate"
    assert alice.ask("POST", activate, headers=old).status_code == 412
    assert alice.ask("DELETE", f"/{so}", headers={"If-Match": '"2-2"'}).status_code == 204


@pytest.mark.parametrize(
    "value", ["", "1-1", '"1-1', '"1-1" "1-1"', '"1-1",', "W/1-1", "*,*", '"a\tb"']
)
@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST"])
def test_an_if_match_that_cannot_be_read_is_refused(
    value: str, method: str, alice: Caller
) -> None:
    """Who sends it wants care; a change made blindly is what they wanted to prevent."""
    so = alice.create()
    path = f"/{so}/versions/1/activate" if method == "POST" else f"/{so}"

    answer = alice.ask(method, path, data=b'{"streams":{}}', headers={"If-Match": value})

    assert answer.status_code == 400
    assert "If-Match" in answer.get_json()["message"]
    assert alice.ask("GET", f"/{so}").headers["ETag"] == '"1-1"'


@pytest.mark.parametrize(
    ("value", "status"),
    [('"1-1"', 204), ('"0-0" , "1-1"', 204), ("*", 204), ('"0-0"', 412), ('W/"1-1"', 412)],
)
def test_if_match_names_states_or_any(value: str, status: int, alice: Caller) -> None:
    so = alice.create()

    assert alice.ask("DELETE", f"/{so}", headers={"If-Match": value}).status_code == status
