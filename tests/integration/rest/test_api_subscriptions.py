"""Subscribing to a stream."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import orjson
import pytest
from api_builders import Caller, Served


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


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "No callback in the request"),
        ({"callback": "gcm"}, "The callback gcm is not one of pubsub, websocket"),
        ({"callback": {"a": 1}}, "The callback {'a': 1} is not one of pubsub, websocket"),
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
