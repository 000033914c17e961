"""Documents whose composite streams ask for actions: what is accepted, and what is not."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import Caller, Served

from servioticy.domain.actuations import MAX_PARAMETERS
from servioticy.domain.documents.actions import MOST

CODE = "function(a){return a.channels.x['current-value']}"


def document(actions: Any, version: str | None = "0.2.0", **more: Any) -> dict[str, Any]:
    code = CODE if version else "{$a.channels.x.current-value}"
    return {
        **({"version": version} if version else {}),
        "actions": [{"name": "open"}],
        "streams": {
            "a": {"channels": {"x": {"type": "number"}}},
            "b": {
                "channels": {"x": {"type": "number", "current-value": code}},
                "actions": actions,
            },
        },
        **more,
    }


def acting(served: Served) -> list[str]:
    sql = "SELECT name FROM acting_streams JOIN streams ON streams.id = stream_id ORDER BY name"
    return [name for (name,) in served.platform.database.rows(sql)]


@pytest.mark.parametrize(
    ("version", "condition"),
    [("0.2.0", "$output.channels.x['current-value'] > 3"), (None, "{$output.channels.x.a} > 3")],
)
def test_a_composite_may_ask_for_actions(
    served: Served, alice: Caller, version: str | None, condition: str
) -> None:
    actions = [{"action": "open"}, {"action": "open", "if": condition, "parameters": {"a": 1}}]

    so = alice.create(document(actions, version))

    assert acting(served) == ["b"]
    assert alice.ask("GET", f"/{so}").get_json()["streams"]["b"]["actions"] == actions


def test_a_stream_that_asks_for_nothing_costs_nothing(served: Served, alice: Caller) -> None:
    alice.create(document(None))

    assert acting(served) == []


def test_a_stream_asks_from_the_version_on_that_says_so(served: Served, alice: Caller) -> None:
    so = alice.create(document(None))
    assert acting(served) == []

    for _ in range(2):
        answer = alice.ask("PUT", f"/{so}", json=document([{"action": "open"}]))
        assert answer.status_code == 200, answer.text

    assert acting(served) == ["b"]


def test_another_object_of_the_same_tenant_may_act(alice: Caller) -> None:
    door = alice.create(document(None))

    alice.create(document([{"action": "open", "serviceObject": door}]))


WRONG: list[tuple[Any, str, str]] = [
    ("open", "/streams/b/actions", "wrong-type"),
    ([1], "/streams/b/actions", "wrong-type"),
    ([{}], "/streams/b/actions/0", "required"),
    ([{"action": 1}], "/streams/b/actions/0/action", "wrong-type"),
    ([{"action": "close"}], "/streams/b/actions/0/action", "unknown-action"),
    ([{"action": "Open"}], "/streams/b/actions/0/action", "unknown-action"),
    (
        [{"action": "open", "serviceObject": "nothing"}],
        "/streams/b/actions/0/serviceObject",
        "unknown-service-object",
    ),
    (
        [{"action": "open", "serviceObject": 1}],
        "/streams/b/actions/0/serviceObject",
        "wrong-type",
    ),
    ([{"action": "open", "if": 1}], "/streams/b/actions/0/if", "wrong-type"),
    (
        [{"action": "open", "parameters": "x" * MAX_PARAMETERS}],
        "/streams/b/actions/0/parameters",
        "too-much",
    ),
    ([{"action": "open"}] * (MOST + 1), "/streams/b/actions", "too-much"),
]


@pytest.mark.parametrize(("actions", "pointer", "code"), WRONG)
def test_what_cannot_be_asked_for_is_refused(
    alice: Caller, actions: Any, pointer: str, code: str
) -> None:
    answer = alice.ask("POST", "/", json=document(actions))

    assert answer.status_code == 400
    assert (answer.get_json()["pointer"], answer.get_json()["code"]) == (pointer, code)


def test_an_expression_names_the_output_only(alice: Caller) -> None:
    answer = alice.ask("POST", "/", json=document([{"action": "open", "if": "{$a.x} > 1"}], None))

    assert answer.status_code == 400
    assert answer.get_json()["pointer"] == "/streams/b/actions/0/if"
    assert answer.get_json()["code"] == "unknown-source"


@pytest.mark.parametrize("public", [False, True])
def test_an_object_of_another_tenant_is_as_one_that_there_is_not(
    alice: Caller, bob: Caller, public: bool
) -> None:
    """The answer does not tell which it is."""
    foreign = bob.create(document(None, public=public))
    texts = set()
    for name in (foreign, "0" * len(foreign)):
        actions = [{"action": "open", "serviceObject": name}]
        answer = alice.ask("POST", "/", json=document(actions))
        assert answer.status_code == 400
        texts.add(answer.text.replace(name, ""))

    assert len(texts) == 1


def test_an_action_that_another_object_lacks_is_refused(alice: Caller) -> None:
    door = alice.create(document(None))

    answer = alice.ask("POST", "/", json=document([{"action": "close", "serviceObject": door}]))

    assert answer.status_code == 400
    assert answer.get_json()["code"] == "unknown-action"
