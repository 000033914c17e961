"""Subscribing to a stream."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import orjson
import pytest
from api_builders import SIMPLE, Caller, Served

from api.resources import subscriptions
from servioticy.storage.cursors import PostgresCursors


def subscribe(caller: Caller, so: str, body: Any, stream: str = "a") -> Any:
    return caller.ask("POST", f"/{so}/streams/{stream}/subscriptions/", json=body)


def test_a_subscription_answers_one_line_with_the_id_first(alice: Caller) -> None:
    so = alice.create()

    answer = subscribe(alice, so, {"callback": "pubsub", "destination": "x"})

    assert answer.status_code == 201
    id_ = answer.text.split('"')[3]
    assert answer.text.startswith(f'{{"id":"{id_}","createdAt":')
    assert re.fullmatch("[0-9a-f]{32}", id_)
    place = f"http://127.0.0.1:8080/{so}/streams/a/subscriptions/{id_}"
    assert answer.headers["Location"] == place


def test_the_same_pubsub_subscription_is_refused(alice: Caller) -> None:
    so = alice.create()
    body = {"callback": "pubsub", "destination": "x"}
    subscribe(alice, so, body)

    answer = subscribe(alice, so, body)

    message = "Duplicated pubsub subscription"
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)
    assert subscribe(alice, so, {"callback": "websocket"}).status_code == 201
    assert subscribe(alice, so, {"callback": "websocket"}).status_code == 201


def test_a_tenant_lists_all_that_it_has_made_and_nothing_else(alice: Caller, bob: Caller) -> None:
    so = alice.create({**SIMPLE, "public": True})
    made = {
        alice.ask("POST", f"/{so}/{place}", json={"callback": "pull"}).get_json()["id"]
        for place in ("streams/a/subscriptions", "subscriptions")
    }
    theirs = subscribe(bob, so, {"callback": "pubsub", "destination": "x"}).get_json()["id"]

    first = alice.ask("GET", "/subscriptions?limit=1").get_json()
    rest = alice.ask("GET", f"/subscriptions?limit=1&after={first['next']}").get_json()
    last = alice.ask("GET", f"/subscriptions?after={rest['next']}").get_json()

    assert {first["subscriptions"][0]["id"], rest["subscriptions"][0]["id"]} == made
    assert last == {"subscriptions": []}
    (found,) = bob.ask("GET", "/subscriptions").get_json()["subscriptions"]
    assert (found["id"], found["destination"], found["state"]) == (theirs, "x", "active")


@pytest.mark.parametrize("place", ["streams/a/subscriptions", "subscriptions"])
def test_nobody_meets_the_destination_of_another_tenant(
    alice: Caller, bob: Caller, place: str
) -> None:
    """On a public stream it would tell that it is there, and keep the other one out."""
    so = alice.create({**SIMPLE, "public": True})
    body = {"callback": "pubsub", "destination": "x"}

    for each, status in ((alice, 201), (bob, 201), (alice, 400), (bob, 400)):
        assert each.ask("POST", f"/{so}/{place}", json=body).status_code == status


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "No callback in the request"),
        (
            {"callback": "gcm"},
            "The callback gcm is not one of pubsub, websocket, http, service, pull",
        ),
        ({"callback": "pull", "from": "yesterday"}, None),
        ({"callback": {"a": 1}}, None),
        ({"callback": "internal", "destination": "x"}, None),
        ({"callback": "pubsub", "destination": 5}, None),
        ({"callback": "pubsub", "destination": "a\0"}, None),
        ({"callback": "pubsub", "destination": "x" * 1001}, None),
    ],
)
def test_what_is_wrong_is_said(alice: Caller, body: Any, message: str | None) -> None:
    answer = subscribe(alice, alice.create(), body)

    assert answer.status_code == 400
    assert message in (None, answer.get_json()["message"])


def test_what_a_client_fetches_waits_for_it_from_where_it_says(
    served: Served, alice: Caller
) -> None:
    so = alice.create()
    told = subscribe(alice, so, {"callback": "pull", "from": 7}).get_json()

    (stored,) = PostgresCursors(served.platform.database).subscriptions([told["id"]])
    assert stored.callback == "pull"
    assert list(stored.cursor.history.values()) == [6]
    assert "delivered" not in told
    assert "secret" not in told


def test_an_unknown_stream_is_not_found(alice: Caller) -> None:
    assert subscribe(alice, alice.create(), {"callback": "pubsub"}, "b").status_code == 404


@pytest.mark.parametrize("named", [True, False])
def test_the_token_as_destination_is_not_stored(
    served: Served, alice: Caller, named: bool
) -> None:
    so = alice.create()
    more = {"destination": alice.token} if named else {"stream": "detected"}

    subscribe(alice, so, {"callback": "pubsub", "customFields": {"k": 1}, **more})

    sql = "SELECT destination, document::text FROM subscriptions"
    ((destination, text),) = served.platform.database.rows(sql)
    document = orjson.loads(text)
    assert destination == hashlib.sha256(alice.token.encode()).hexdigest()
    assert alice.token not in text
    assert (document["source"], document["stream"], document["customFields"]) == (
        so,
        "a",
        {"k": 1},
    )


HTTP = {"callback": "http", "destination": "http://h/in?lat=@lat@"}


@pytest.mark.parametrize(
    "body",
    [
        {"callback": "websocket"},
        {"callback": "pubsub", "destination": "x"},
        {"callback": "service", "destination": "topic"},
        HTTP,
        {
            **HTTP,
            "customFields": {
                "aliases": [{"@lat@": "{$.channels.lat.current-value}"}],
                "method": "GET",
                "headers": {"h": "{$.lastUpdate}"},
                "body": "...",
            },
            "delay": 0,
            "expire": 0,
        },
        {"callback": "http", "destination": "HTTPS://[::1]:8443/"},
    ],
)
def test_every_callback_is_kept(alice: Caller, body: Any) -> None:
    so = alice.create()

    made = subscribe(alice, so, body).get_json()
    (listed,) = alice.ask("GET", f"/{so}/streams/a/subscriptions").get_json()["subscriptions"]
    read = alice.ask("GET", f"/subscriptions/{made['id']}").get_json()

    assert listed == read
    assert body.items() <= {"delay": 0, **read}.items()


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"destination": None}, ""),
        ({"destination": 5}, "/destination"),
        ({"destination": "ftp://h/"}, "/destination"),
        ({"destination": "http://"}, "/destination"),
        ({"destination": "//h/"}, "/destination"),
        ({"destination": "http://user:secret@h/"}, "/destination"),
        ({"destination": "http://{$.lastUpdate}/"}, "/destination"),
        ({"destination": "http://@host@/"}, "/destination"),
        ({"destination": "http://h:0/"}, "/destination"),
        ({"destination": "http://h:65536/"}, "/destination"),
        ({"destination": "http://h/a b"}, "/destination"),
        ({"destination": "http://h/\r\nHost: x"}, "/destination"),
        ({"destination": "http://h/" + "x" * 8_000}, "/destination"),
        ({"customFields": []}, "/customFields"),
        ({"customFields": {"method": "GE T"}}, "/customFields/method"),
        ({"customFields": {"body": {}}}, "/customFields/body"),
        ({"customFields": {"headers": []}}, "/customFields/headers"),
        ({"customFields": {"headers": {"a": 1}}}, "/customFields/headers/a"),
        ({"customFields": {"headers": {"a": "b\r\nc: d"}}}, "/customFields/headers/a"),
        ({"customFields": {"headers": {str(n): "" for n in range(51)}}}, "/customFields/headers"),
        ({"customFields": {"aliases": [{"@a@": 1}]}}, "/customFields/aliases/0/@a@"),
        ({"customFields": {"aliases": ["x"]}}, "/customFields/aliases/0"),
        ({"customFields": {"aliases": [{}] * 201}}, "/customFields/aliases"),
    ],
)
def test_a_call_that_cannot_be_made_is_refused_with_its_place(
    alice: Caller, more: Any, pointer: str
) -> None:
    answer = subscribe(alice, alice.create(), {**HTTP, **more})

    assert (answer.status_code, answer.get_json()["pointer"]) == (400, pointer)


def test_many_subscriptions_are_listed_page_by_page(
    alice: Caller, bob: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them for the owner of the stream, one's own for others."""
    monkeypatch.setattr(subscriptions, "PAGE_ROWS", 2)
    so = alice.create({**SIMPLE, "public": True})
    made = [
        subscribe(caller, so, {"callback": "websocket"}).get_json()["id"]
        for caller in (alice, bob, alice, bob, bob)
    ]

    def listed(caller: Caller) -> set[str]:
        answer = caller.ask("GET", f"/{so}/streams/a/subscriptions").get_json()
        return {each["id"] for each in answer["subscriptions"]}

    assert listed(alice) == set(made)
    assert listed(bob) == {made[1], made[3], made[4]}


def test_a_tenant_has_so_many_subscriptions_to_a_stream(
    alice: Caller, bob: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = subscriptions.TO_STREAM._replace(most=2)
    monkeypatch.setattr(subscriptions, "TO_STREAM", room)
    so = alice.create({**SIMPLE, "public": True})

    answers = [subscribe(alice, so, {"callback": "websocket"}) for _ in range(3)]

    assert [each.status_code for each in answers] == [201, 201, 400]
    assert "already" in answers[2].get_json()["message"]
    assert subscribe(bob, so, {"callback": "websocket"}).status_code == 201


def test_what_an_application_is_called_with_is_for_itself(alice: Caller, bob: Caller) -> None:
    """There may be a password in it."""
    so = alice.create({**SIMPLE, "public": True})
    fields = {"headers": {"Authorization": "secret"}}
    body = {"callback": "http", "destination": "http://h/secret", "customFields": fields}

    id_ = subscribe(bob, so, body).get_json()["id"]

    assert "secret" in bob.ask("GET", f"/subscriptions/{id_}").text
    assert "secret" not in alice.ask("GET", f"/subscriptions/{id_}").text
    assert "secret" not in alice.ask("GET", f"/{so}/streams/a/subscriptions").text
