"""What tenants let each other do with their streams: given, used and seen."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import NOW, SIMPLE, Caller, Served
from contract_world import OPERATIONS
from granting import (
    ALICE,
    BOB,
    TWO,
    alice,
    bob,
    derives,
    give,
    id_of,
    reader,
    reads,
    so,
    ways_to_read,
)

from api.resources.grants import MOST

__all__ = ["alice", "bob", "so"]


def test_a_grant_to_read_is_for_all_ways_to_read_one_stream(
    served: Served, alice: Caller, bob: Caller, so: str
) -> None:
    assert len(list(ways_to_read(so))) > 8
    assert reads(served, bob, so) == {False}
    assert not derives(bob, so)

    give(alice, so)

    assert reads(served, bob, so) == {True}
    assert derives(bob, so)
    assert reads(served, bob, so, "b") == {False}
    assert not derives(bob, so, "b")
    assert reads(served, served.tenant("carol"), so) == {False}
    for path in (f"/{so}", f"/{so}/streams", f"/{so}/actuations"):
        assert bob.ask("GET", path).status_code == 401


def test_a_grant_of_a_service_object_is_for_its_document_and_all_streams(
    served: Served, alice: Caller, bob: Caller, so: str
) -> None:
    give(alice, so, None)

    assert reads(served, bob, so) == {True}
    assert reads(served, bob, so, "b") == {True}
    assert bob.ask("GET", f"/{so}").status_code == 200
    found = bob.ask("GET", "/service-objects?public=true").get_json()["data"]
    assert [(each["id"], each["own"]) for each in found] == [(so, False)]


@pytest.mark.parametrize("stream", ["a", None])
def test_who_may_only_derive_gets_the_raw_updates_by_no_way(
    served: Served, alice: Caller, bob: Caller, so: str, stream: str | None
) -> None:
    give(alice, so, stream, use="derive")

    assert reads(served, bob, so) == {False}
    assert derives(bob, so)
    assert bob.ask("GET", f"/{so}").status_code == 401
    assert so not in bob.ask("GET", "/service-objects?public=true").text
    own = bob.create(reader(so))
    tree = bob.ask("GET", f"/{own}/streams/c/tree").text
    warned = bob.ask("PUT", f"/{own}", json=reader(so)).text
    assert so not in tree + warned


@pytest.mark.parametrize("use", ["read", "derive"])
def test_no_grant_lets_anybody_write(alice: Caller, bob: Caller, so: str, use: str) -> None:
    """Whatever needs another right is refused as before; so it is for what is public."""
    give(alice, so, None, use=use)
    alice.ask("PUT", f"/{so}", json={**TWO, "public": use == "read"})
    wrong = []
    for (method, path), operation in OPERATIONS.items():
        if operation["x-right"] not in ("read", "subscribe", "none") and "{so}" in path:
            named = path.format(so=so, s="a", n=1, group="g", action="x", id="x", actuation="x")
            if bob.ask(method, named, json={"everyone": True}).status_code != 401:
                wrong.append((method, path))

    assert wrong == []


def test_everyone_is_everyone(served: Served, alice: Caller, bob: Caller, so: str) -> None:
    answer = alice.ask("POST", f"/{so}/streams/a/grants", json={"everyone": True})

    assert answer.status_code == 201
    assert reads(served, bob, so) == reads(served, served.tenant("carol"), so) == {True}


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({}, "to a"),
        ({"tenant": BOB, "everyone": True}, "to a"),
        ({"tenant": None}, "to a"),
        ({"everyone": False}, "to a"),
        ({"everyone": 1}, "true or false"),
        ({"tenant": 7}, "id of a tenant"),
        ({"tenant": "bob"}, "no tenant"),
        ({"tenant": "nobody"}, "no tenant"),
        ({"tenant": f"{BOB}\0"}, "a NUL"),
        ({"tenant": ALICE}, "its own"),
        ({"tenant": BOB, "use": "write"}, "use is"),
        ({"tenant": BOB, "use": ["read"]}, "use is"),
        ({"tenant": BOB, "expiresIn": 0}, "expiresIn"),
        ({"tenant": BOB, "expiresIn": True}, "expiresIn"),
        ({"tenant": BOB, "expiresIn": 10**12}, "expiresIn"),
    ],
)
def test_what_is_no_grant_is_refused(
    alice: Caller, bob: Caller, so: str, wanted: Any, reason: str
) -> None:
    answer = alice.ask("POST", f"/{so}/streams/a/grants", json=wanted)

    assert answer.status_code == 400
    assert reason in answer.get_json()["message"]


def test_nobody_grants_what_is_not_his(
    served: Served, alice: Caller, bob: Caller, so: str
) -> None:
    """Nor what he was granted himself, nor what is not there."""
    give(alice, so, None)
    carol = id_of(served.tenant("carol"))
    for path in (f"/{so}/grants", f"/{so}/streams/a/grants"):
        assert bob.ask("POST", path, json={"tenant": carol}).status_code == 401
    for path in ("/nothing/grants", f"/{so}/streams/nothing/grants"):
        assert alice.ask("POST", path, json={"tenant": BOB}).status_code == 404


def test_a_device_grants_nothing(served: Served, alice: Caller, bob: Caller) -> None:
    made = alice.ask("POST", "/", json=SIMPLE).get_json()
    device = Caller(served.app.test_client(), made["api_token"])

    answer = device.ask("POST", f"/{made['id']}/grants", json={"tenant": BOB})

    assert answer.status_code == 403


def test_both_sides_see_a_grant_and_nobody_else(
    served: Served, alice: Caller, bob: Caller, so: str
) -> None:
    id_ = give(alice, so, use="derive", expiresIn=60)
    told = {
        "id": id_,
        "from": "alice",
        "tenant": BOB,
        "name": "bob",
        "serviceObject": so,
        "stream": "a",
        "use": "derive",
        "createdAt": int(NOW * 1000),
        "expiresAt": int(NOW * 1000) + 60_000,
    }

    def listed(who: Caller, side: str = "both") -> Any:
        return who.ask("GET", f"/grants?side={side}").get_json()["grants"]

    assert listed(alice) == listed(alice, "given") == [{**told, "side": "given"}]
    assert listed(bob) == listed(bob, "received") == [{**told, "side": "received"}]
    assert listed(alice, "received") == listed(bob, "given") == []
    assert listed(served.tenant("carol")) == []
    assert alice.ask("GET", "/grants?side=other").status_code == 400


def test_both_sides_find_it_in_their_audit_logs(
    served: Served, alice: Caller, bob: Caller, so: str
) -> None:
    id_ = give(alice, so)
    alice.ask("DELETE", f"/grants/{id_}")

    def entries(who: Caller) -> list[tuple[str, str]]:
        found = who.ask("GET", "/audit").get_json()["data"]
        return sorted((each["action"], each["by"]) for each in found if each["kind"] == "grant")

    assert [action for action, _ in entries(alice)] == ["made", "revoked"]
    assert [action for action, _ in entries(bob)] == ["made", "revoked"]
    assert entries(served.tenant("carol")) == []


def test_grants_are_listed_a_page_at_a_time_and_so_many(
    alice: Caller, bob: Caller, so: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.resources.grants.PAGE_ROWS", 2)
    monkeypatch.setattr("api.resources.grants.MOST", 3)
    given = sorted(give(alice, so) for _ in range(3))
    fourth = alice.ask("POST", f"/{so}/grants", json={"tenant": BOB})
    first = alice.ask("GET", "/grants").get_json()
    second = bob.ask("GET", f"/grants?after={first['next']}").get_json()

    assert fourth.status_code == 409
    assert [each["id"] for page in (first, second) for each in page["grants"]] == given
    assert "next" not in second
    assert MOST > 3


def test_what_one_may_only_derive_from_tells_nothing_of_its_document(
    alice: Caller, bob: Caller
) -> None:
    """A group with conditions would: on whether it has this member."""
    secret = {**SIMPLE, "customFields": {"owner": "carol"}}
    for made in (alice.create(secret), alice.create(secret)):
        give(alice, made, use="derive")
    where = {"customFields.owner": "carol", "public": True}
    code = {"x": {"type": "number", "current-value": "{$all.channels.x.current-value}"}}
    composite = {
        "groups": {"all": {"where": where, "stream": "a"}},
        "streams": {"s": {"channels": code}},
    }
    reader = bob.create(composite)

    assert bob.ask("GET", f"/{reader}/groups/all").get_json()["members"] == []
