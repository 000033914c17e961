"""Changing Service Objects, their versions, and what is told of their trees."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from api_builders import SIMPLE, Caller, Served
from changing_documents import CHANNEL, WIDER, composite, records, replace, versions

from servioticy.domain.records import (
    DefinitionRecord,
    DeletionRecord,
)


def test_another_document_is_the_next_version(served: Served, alice: Caller) -> None:
    so = alice.create()
    answer = replace(alice, so, WIDER)

    now = alice.ask("GET", f"/{so}").get_json()["updatedAt"]
    assert answer.status_code == 200
    assert answer.text == f'{{"id":"{so}","updatedAt":{now},"version":2}}'
    assert records(served, DefinitionRecord) == [
        DefinitionRecord(so, 1, 1),
        DefinitionRecord(so, 2, 2),
    ]
    assert versions(alice, so) == [(1, False), (2, True)]
    body = b'{"channels":{"y":{"current-value":1}},"lastUpdate":1}'
    assert alice.put(so, body).status_code == 202


@pytest.mark.parametrize(
    "body",
    [
        {"customFields": {"room": 5}},
        {"id": "mine", "customFields": {"room": 5}},
        {**SIMPLE, "customFields": {"room": 5}},
        {**SIMPLE, "customFields": {"room": 5}, "public": "False", "createdAt": 7},
    ],
)
def test_custom_fields_alone_are_no_new_version(served: Served, alice: Caller, body: Any) -> None:
    """The original applied nothing else, and its clients send either form."""
    so = alice.create({**SIMPLE, "customFields": {"room": 4}})
    answer = replace(alice, so, body)

    shown = alice.ask("GET", f"/{so}").get_json()
    assert answer.text == f'{{"id":"{so}","updatedAt":{shown["updatedAt"]}}}'
    assert shown["customFields"] == {"room": 5}
    assert shown["streams"] == SIMPLE["streams"]
    assert versions(alice, so) == [(1, True)]
    assert len(records(served, DefinitionRecord)) == 1


def test_what_is_read_may_be_put_back(alice: Caller) -> None:
    so = alice.create({**SIMPLE, "customFields": {"k": [1.0, {}]}, "data": 1, "public": False})

    shown = alice.ask("GET", f"/{so}").get_json()
    assert "version" not in replace(alice, so, shown).get_json()
    again = alice.ask("GET", f"/{so}").get_json()
    assert {**again, "updatedAt": 0} == {**shown, "updatedAt": 0}


def test_the_order_of_streams_is_a_change(alice: Caller) -> None:
    """It is the order of computing."""
    streams = {name: {"channels": {"x": CHANNEL}} for name in "ab"}
    so = alice.create({"streams": streams})

    turned = {"streams": {name: streams[name] for name in "ba"}}
    assert replace(alice, so, turned).get_json()["version"] == 2


def test_without_custom_fields_there_are_none(alice: Caller) -> None:
    so = alice.create({**SIMPLE, "customFields": {"room": 4}})
    replace(alice, so, SIMPLE)

    assert "customFields" not in alice.ask("GET", f"/{so}").get_json()


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{}", 400, "Service Object without streams"),
        (b'{"name":"x"}', 400, "Service Object without streams"),
        (b"[]", 400, "The request has to be a JSON object"),
        (b"", 400, "No data in the request"),
        (b'{"streams":{"a":{}}}', 400, "stream: a without channels"),
    ],
)
def test_a_bad_document_changes_nothing(
    alice: Caller, body: bytes, status: int, message: str
) -> None:
    so = alice.create()
    answer = alice.ask("PUT", f"/{so}", data=body)

    assert (answer.status_code, answer.get_json()["message"]) == (status, message)
    assert versions(alice, so) == [(1, True)]


def test_of_concurrent_changes_every_one_is_a_version(served: Served, alice: Caller) -> None:
    """Without If-Match the last one is in force, and none is lost without a trace."""
    so = alice.create()
    caller = [Caller(served.app.test_client(), alice.token) for _ in range(8)]
    numbers = []

    def change(n: int) -> None:
        body = {"streams": {"a": {"channels": {"x": CHANNEL, f"y{n}": CHANNEL}}}}
        numbers.append(replace(caller[n], so, body).get_json()["version"])

    threads = [threading.Thread(target=change, args=(n,)) for n in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(numbers) == list(range(2, 10))
    kept = [
        set(alice.ask("GET", f"/{so}/versions/{n}").get_json()["streams"]["a"]["channels"])
        for n in numbers
    ]
    assert sorted(map(sorted, kept)) == sorted(["x", f"y{n}"] for n in range(8))
    told = [record.version for record in records(served, DefinitionRecord)]
    assert told == list(range(1, 10))


def test_an_earlier_version_comes_back_and_others_stay(served: Served, alice: Caller) -> None:
    so = alice.create()
    replace(alice, so, {**WIDER, "customFields": 2})
    answer = alice.ask("POST", f"/{so}/versions/1/activate")

    assert (answer.status_code, answer.get_json()["version"]) == (200, 1)
    assert versions(alice, so) == [(1, True), (2, False)]
    shown = alice.ask("GET", f"/{so}").get_json()
    assert (shown["streams"], shown["customFields"]) == (SIMPLE["streams"], 2)
    assert records(served, DefinitionRecord)[-1] == DefinitionRecord(so, 1, 3)
    assert alice.ask("GET", f"/{so}/versions/2").get_json()["streams"] == WIDER["streams"]
    assert replace(alice, so, {"streams": {}}).get_json()["version"] == 3


def test_activating_what_is_in_force_does_nothing(served: Served, alice: Caller) -> None:
    so = alice.create()
    answer = alice.ask("POST", f"/{so}/versions/1/activate")

    assert (answer.status_code, answer.get_json()["version"]) == (200, 1)
    assert len(records(served, DefinitionRecord)) == 1


@pytest.mark.parametrize("version", ["0", "2", "99999999999999999999", "x", "-1"])
def test_what_is_no_version_is_not_found(alice: Caller, version: str) -> None:
    so = alice.create()

    assert alice.ask("GET", f"/{so}/versions/{version}").status_code == 404
    assert alice.ask("POST", f"/{so}/versions/{version}/activate").status_code == 404


def test_a_stream_that_others_read_cannot_go(alice: Caller, bob: Caller) -> None:
    so = alice.create({**SIMPLE, "public": True})
    own = alice.create(composite("g", g=([so], "a")))
    theirs = bob.create(composite("g", g=([so], "a")))

    answer = replace(alice, so, {"streams": {"b": {"channels": {}}}})

    assert answer.status_code == 409
    assert answer.get_json()["message"] == (
        f"The streams a cannot go: groups of these Service Objects subscribe to them: {own}, "
        "1 of other tenants"
    )
    for caller, reader in ((alice, own), (bob, theirs)):
        assert caller.ask("DELETE", f"/{reader}").status_code == 204
    assert replace(alice, so, {"streams": {"b": {"channels": {}}}}).status_code == 200


def test_going_back_cannot_take_a_stream_from_others(alice: Caller) -> None:
    so = alice.create({"streams": {}})
    replace(alice, so, SIMPLE)
    alice.create(composite("g", g=([so], "a")))

    assert alice.ask("POST", f"/{so}/versions/1/activate").status_code == 409


def test_a_stream_that_went_keeps_its_history_and_takes_no_updates(
    served: Served, alice: Caller
) -> None:
    so = alice.create()
    alice.put(so)
    served.store()
    replace(alice, so, {"streams": {"b": {"channels": {}}}})
    served.store()

    assert len(alice.ask("GET", f"/{so}/streams/a").get_json()["data"]) == 1
    assert alice.put(so).status_code == 404
    assert [each["name"] for each in alice.ask("GET", f"/{so}/streams").get_json()["streams"]] == [
        "b"
    ]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", ""),
        ("DELETE", ""),
        ("DELETE", "/streams/a"),
        ("GET", "/versions"),
        ("POST", "/versions"),
        ("GET", "/versions/1"),
        ("POST", "/versions/1/activate"),
    ],
)
def test_others_change_nothing_even_where_they_may_read(
    alice: Caller, bob: Caller, method: str, path: str
) -> None:
    """In the original anybody could change and delete what was public."""
    so = alice.create({**SIMPLE, "public": True})

    assert bob.ask(method, f"/{so}{path}", json=WIDER).status_code == 401
    assert versions(alice, so) == [(1, True)]


def test_a_log_that_does_not_answer_is_told_of_the_change_later(
    served: Served, alice: Caller
) -> None:
    """And before the next change, which is made by what the earlier one left."""
    so = alice.create()
    served.platform.state.broker_answers = False
    assert replace(alice, so, WIDER).status_code == 503
    assert alice.ask("DELETE", f"/{so}").status_code == 503
    served.platform.state.broker_answers = True

    assert alice.ask("DELETE", f"/{so}").status_code == 204
    assert [record for _, record in served.platform.records(0)] == [
        DefinitionRecord(so, 1, 1),
        DefinitionRecord(so, 2, 2),
        DeletionRecord(so),
    ]


def test_subscriptions_are_read_and_dropped_by_those_they_concern(
    alice: Caller, bob: Caller
) -> None:
    so = alice.create({**SIMPLE, "public": True})
    place = f"/{so}/streams/a/subscriptions"
    assert alice.ask("GET", place).get_json() == {"subscriptions": []}
    ids = [
        caller.ask("POST", place, json={"callback": "pubsub", "destination": name}).get_json()[
            "id"
        ]
        for caller, name in ((alice, "alices"), (bob, "bobs"))
    ]

    def listed(caller: Caller) -> list[tuple[str, str | None]]:
        found = caller.ask("GET", place).get_json()["subscriptions"]
        return sorted((each["id"], each.get("destination")) for each in found)

    assert listed(alice) == sorted([(ids[0], "alices"), (ids[1], None)])
    assert listed(bob) == [(ids[1], "bobs")]
    assert bob.ask("GET", f"/subscriptions/{ids[1]}").get_json()["destination"] == "bobs"
    assert bob.ask("GET", f"/subscriptions/{ids[0]}").status_code == 401
    assert bob.ask("DELETE", f"/subscriptions/{ids[0]}").status_code == 401
    assert alice.ask("DELETE", f"/subscriptions/{ids[1]}").status_code == 204
    answer = bob.ask("GET", f"/subscriptions/{ids[1]}")
    assert answer.status_code == 404
    assert answer.get_json()["message"] == "The Subscription was not found."
    assert alice.ask("DELETE", f"/{so}").status_code == 204
    assert alice.ask("GET", f"/subscriptions/{ids[0]}").status_code == 404
