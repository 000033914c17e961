"""Subscribing to all of a Service Object, and to a group."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from api_builders import SIMPLE, Caller, Served

from api.resources import subscribing, subscriptions_to_many
from servioticy.domain.model import StreamRef
from servioticy.ports.cursors import DurableSubscription, Source
from servioticy.storage.cursors import PostgresCursors

PULL = {"callback": "pull"}
TWO = {"streams": dict.fromkeys(("a", "b"), SIMPLE["streams"]["a"])}


def subscribe(caller: Caller, path: str, body: Any = PULL) -> Any:
    return caller.ask("POST", f"/{path}/subscriptions", json=body)


def made(caller: Caller, path: str, body: Any = PULL) -> str:
    answer = subscribe(caller, path, body)
    assert answer.status_code == 201, answer.text
    id_: str = answer.get_json()["id"]
    return id_


def stored(served: Served, id_: str) -> DurableSubscription:
    (found,) = PostgresCursors(served.platform.database).subscriptions([id_])
    return found


def a_group(caller: Caller, *members: str, **where: Any) -> str:
    content = {"stream": "a", **({"where": where} if where else {"soIds": list(members)})}
    total = {
        "channels": {"x": {"type": "number", "current-value": "{$g.channels.x.current-value}"}}
    }
    return caller.create({"groups": {"g": content}, "streams": {"total": total}})


def test_to_a_service_object(alice: Caller, served: Served) -> None:
    so = alice.create(TWO)
    id_ = made(alice, so)
    found = stored(served, id_)

    assert found.streams.keys() == {StreamRef(so, "a"), StreamRef(so, "b")}
    assert (found.source, found.cursor.history) == (Source(so), {})
    assert found.cursor.newest == found.newest
    told = alice.ask("GET", f"/subscriptions/{id_}").get_json()
    assert (told["source"], "stream" in told, told["state"]) == (so, False, "active")
    listed = alice.ask("GET", f"/{so}/subscriptions").get_json()["subscriptions"]
    assert [each["id"] for each in listed] == [id_]
    assert alice.ask("GET", f"/{so}/streams/a/subscriptions").get_json() == {"subscriptions": []}
    assert alice.ask("DELETE", f"/subscriptions/{id_}").status_code == 204
    assert alice.ask("GET", f"/{so}/subscriptions").get_json() == {"subscriptions": []}


def test_to_a_group_begins_in_every_partition(alice: Caller, served: Served) -> None:
    members = [alice.create() for _ in range(3)]
    reader = a_group(alice, *members)
    id_ = made(alice, f"{reader}/groups/g")
    found = stored(served, id_)

    assert found.streams.keys() == {StreamRef(each, "a") for each in members}
    assert found.cursor.since.keys() == {0, 1}
    listed = alice.ask("GET", f"/{reader}/groups/g/subscriptions").get_json()["subscriptions"]
    assert [(each["id"], each["group"]) for each in listed] == [(id_, "g")]


def test_the_history_of_all_comes_first(alice: Caller, served: Served) -> None:
    so = alice.create(TWO)
    since = stored(served, made(alice, so, PULL | {"from": 100}))
    beginning = stored(served, made(alice, so, PULL | {"from": "beginning"}))

    assert since.cursor.history == {StreamRef(so, "a"): 99, StreamRef(so, "b"): 99}
    assert set(beginning.cursor.history.values()) == {-1}


def test_the_history_of_too_many_is_refused(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribing, "MOST_HISTORIES", 1)
    so = alice.create(TWO)
    answer = subscribe(alice, so, PULL | {"from": "beginning"})

    assert (answer.status_code, answer.get_json()["pointer"]) == (400, "/from")
    assert subscribe(alice, so).status_code == 201


def test_it_may_begin_where_another_one_stands(alice: Caller, served: Served) -> None:
    """The topic ends at 10 and 20."""
    so = alice.create()
    for path in (so, f"{so}/streams/a"):
        begin = {"offsets": {"0": 10, "1": 7}}
        assert stored(served, made(alice, path, PULL | {"from": begin})).cursor.offsets == {
            0: 10,
            1: 7,
        }


@pytest.mark.parametrize(
    "offsets",
    [{"0": 11}, {"2": 0}, {"0": -1}, {"0": 1.5}, {"0": True}, {"00": 1}, {"x": 1}, {}, [], None],
)
def test_a_place_that_is_none_is_refused(alice: Caller, offsets: Any) -> None:
    answer = subscribe(alice, alice.create(), PULL | {"from": {"offsets": offsets}})

    assert answer.status_code == 400, answer.text
    assert answer.get_json()["pointer"].startswith("/from/offsets")


def test_what_does_not_wait_is_refused(alice: Caller) -> None:
    assert subscribe(alice, alice.create(), {"callback": "websocket"}).status_code == 400


def test_a_group_that_is_not_there(alice: Caller) -> None:
    assert subscribe(alice, f"{alice.create()}/groups/g").status_code == 404


def test_others_subscribe_to_what_is_public_and_to_no_group(
    alice: Caller, bob: Caller, served: Served
) -> None:
    """Who belongs to a group is its owner's to know."""
    member = alice.create()
    document = {"groups": {"g": {"stream": "a", "soIds": [member]}}, "streams": TWO["streams"]}
    public = alice.create(document | {"public": "true"})
    private = alice.create(TWO)

    assert subscribe(bob, private).status_code == 401
    assert subscribe(bob, f"{public}/groups/g").status_code == 401
    assert bob.ask("GET", f"/{public}/groups/g/subscriptions").status_code == 401
    id_ = made(bob, public)
    assert stored(served, id_).streams.keys() == {StreamRef(public, "a"), StreamRef(public, "b")}
    own = made(alice, public)
    seen = [
        {
            each["id"]
            for each in who.ask("GET", f"/{public}/subscriptions").get_json()["subscriptions"]
        }
        for who in (alice, bob)
    ]
    assert seen == [{id_, own}, {id_}]


def test_a_token_of_one_object_subscribes_to_it_and_to_no_group(
    alice: Caller, served: Served
) -> None:
    so = a_group(alice, alice.create())
    answer = alice.ask("POST", "/tokens", json={"name": "device", "serviceObject": so})
    device = Caller(alice.client, answer.get_json()["token"])

    assert subscribe(device, so).status_code == 201
    assert subscribe(device, f"{so}/groups/g").status_code == 403
    answer = alice.ask(
        "POST", "/tokens", json={"name": "s", "serviceObject": so, "stream": "total"}
    )
    assert subscribe(Caller(alice.client, answer.get_json()["token"]), so).status_code == 403


def test_members_of_a_group_follow_the_document(alice: Caller, served: Served) -> None:
    first, second = alice.create(), alice.create()
    reader = a_group(alice, first)
    id_ = made(alice, f"{reader}/groups/g")
    cursors = PostgresCursors(served.platform.database)
    before = cursors.changes()[id_]
    document = alice.ask("GET", f"/{reader}").get_json()
    document["groups"]["g"]["soIds"] = [second]
    answer = alice.ask("PUT", f"/{reader}", data=orjson.dumps(document))
    assert answer.status_code == 200, answer.text

    assert stored(served, id_).streams.keys() == {StreamRef(second, "a")}
    assert cursors.changes()[id_].own == before.own
    assert cursors.changes()[id_].streams > before.streams


@pytest.mark.parametrize("name", ["TO_OBJECT", "TO_GROUPS"])
def test_there_are_so_many(alice: Caller, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    room = getattr(subscriptions_to_many, name)._replace(most=2)
    monkeypatch.setattr(subscriptions_to_many, name, room)
    reader = a_group(alice, alice.create())
    path = reader if name == "TO_OBJECT" else f"{reader}/groups/g"
    answers = [subscribe(alice, path).status_code for _ in range(3)]

    assert answers == [201, 201, 400]


def test_a_test_is_of_its_first_stream(alice: Caller) -> None:
    body = {"callback": "http", "destination": "https://example.org/"}
    id_ = made(alice, alice.create(TWO), body)

    assert alice.ask("POST", f"/subscriptions/{id_}/test").status_code == 202
    update = alice.ask("GET", f"/subscriptions/{id_}/test").get_json()["update"]
    assert update["channels"] == {"x": {"current-value": 0}}
