"""What tenants let each other do with their streams: given, used, seen, and ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from api_builders import NOW, SIMPLE, Caller, Served
from contract_world import OPERATIONS

from api.app import create_app
from api.background.worker import worker
from api.resources.grants import MOST
from delivery.admission.refusals import Refusal
from delivery.admission.requests import WatchRequest, admit
from sandbox.text import argument_names
from servioticy.domain.model import StreamRef
from servioticy.domain.records import GrantRecord, RevocationRecord
from servioticy.errors import Unavailable
from servioticy.settings import Settings
from servioticy.storage.cursors import PostgresCursors

ALICE, BOB = "a" * 32, "b" * 32
"""Their ids as others know them, in the place of those that chance gave them."""
TWO = {"streams": dict.fromkeys(("a", "b"), SIMPLE["streams"]["a"])}
BODIES: dict[str, Any] = {
    "search": {"timerange": True, "rangefrom": 0},
    "subscriptions": {"callback": "pubsub"},
}


@pytest.fixture
def so(alice: Caller, served: Served) -> str:
    """A private Service Object of alice with an update in its stream `a`."""
    made = alice.create(TWO)
    assert alice.put(made).status_code == 202
    served.store()
    return made


@pytest.fixture
def bob(served: Served) -> Caller:
    return known(served, "bob", BOB)


@pytest.fixture
def alice(served: Served) -> Caller:
    return known(served, "alice", ALICE)


def known(served: Served, name: str, public_id: str) -> Caller:
    found = served.tenant(name)
    sql = "UPDATE tenants SET public_id = %(public_id)s WHERE name = %(name)s"
    served.platform.database.rows(sql, {"public_id": public_id, "name": name})
    return found


def id_of(who: Caller) -> str:
    id_: str = who.ask("GET", "/grants").get_json()["tenant"]
    return id_


def give(owner: Caller, so: str, stream: str | None = "a", **wanted: Any) -> str:
    """A grant to bob, who has told his id."""
    path = f"/{so}/grants" if stream is None else f"/{so}/streams/{stream}/grants"
    answer = owner.ask("POST", path, json={"tenant": BOB, **wanted})
    assert answer.status_code == 201, answer.text
    id_: str = answer.get_json()["id"]
    return id_


def reader(*sources: str, stream: str = "a") -> dict[str, Any]:
    """A document with a composite over these Service Objects."""
    channel = {"type": "number", "current-value": "function(g) { return 1 }"}
    groups = {"g": {"soIds": list(sources), "stream": stream}}
    streams = {"c": {"channels": {"x": channel}}}
    return {"version": "0.2.0", "groups": groups, "streams": streams}


def derives(who: Caller, so: str, stream: str = "a") -> bool:
    answer = who.ask("POST", "/", json=reader(so, stream=stream))
    assert answer.status_code in (201, 401), answer.text
    return answer.status_code == 201


def ways_to_read(so: str, stream: str = "a") -> Iterator[tuple[str, str, Any]]:
    """Every route by which others get something of a stream, as the OpenAPI document has them."""
    for (method, path), operation in OPERATIONS.items():
        if operation["x-right"] in ("read", "subscribe") and "{so}/streams/{s}" in path:
            last = path.rsplit("/", 1)[-1]
            yield method, path.format(so=so, s=stream), BODIES.get(last)


def live(served: Served, who: Caller, so: str, stream: str = "a") -> int:
    """The status with which a socket is refused; 101 where it is not."""
    found = admit(
        WatchRequest(StreamRef(so, stream), who.token, None), served.platform.ports.addresses
    )
    return found.status if isinstance(found, Refusal) else 101


def reads(served: Served, who: Caller, so: str, stream: str = "a") -> set[bool]:
    """Whether each way leads to the stream: one answer, where all of them agree."""
    found = {
        who.ask(method, path, json=body).status_code != 401
        for method, path, body in ways_to_read(so, stream)
    }
    asked = {"streams": [{"serviceObject": so, "stream": stream}]}
    (last,) = who.ask("POST", "/lastUpdates", json=asked).get_json()["data"]
    if stream == "a":
        found.add("update" in last or "lastUpdate" in str(last))
    return found | {live(served, who, so, stream) == 101}


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
        ({"tenant": f"{BOB}\0"}, "no tenant"),
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


def test_a_revoked_grant_is_good_for_nothing_from_then_on(
    served: Served, alice: Caller, bob: Caller, so: str
) -> None:
    id_ = give(alice, so)
    own = bob.create(reader(so))
    wanted = {"callback": "pull"}
    made = bob.ask("POST", f"/{so}/streams/a/subscriptions", json=wanted).get_json()["id"]
    cursors = PostgresCursors(served.platform.database)
    before = set(cursors.changes())

    assert bob.ask("DELETE", f"/grants/{id_}").status_code == 404
    assert alice.ask("DELETE", f"/grants/{id_}").status_code == 204

    assert alice.ask("DELETE", f"/grants/{id_}").status_code == 404
    assert reads(served, bob, so) == {False}
    assert not derives(bob, so)
    assert (before, set(cursors.changes())) == ({made}, set())
    assert bob.ask("GET", "/grants").get_json()["grants"] == []
    assert bob.ask("PUT", f"/{own}", json=reader(so)).status_code == 200, "it named it before"
    records = [record for n in (0, 1) for _, record in served.platform.records(n)]
    assert GrantRecord(so, id_) in records
    assert RevocationRecord(so, id_) in records


def test_another_grant_beside_a_revoked_one_stays(
    served: Served, alice: Caller, bob: Caller, so: str
) -> None:
    first, _second = give(alice, so), give(alice, so, use="derive")

    alice.ask("DELETE", f"/grants/{first}")

    assert reads(served, bob, so) == {False}
    assert derives(bob, so)


@dataclass
class Late:
    """A clock."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


def test_an_expired_grant_ends_by_itself_and_the_log_is_told(
    served: Served, alice: Caller, bob: Caller, so: str
) -> None:
    """For reads at once, by the clock of the store; for composites where the record stands."""
    id_, clock = give(alice, so, expiresIn=60), Late()
    app = create_app(served.platform.ports, Settings(), clock, argument_names)
    background = worker(app.extensions["servioticy"])
    told = len(served.platform.log.records(0)) + len(served.platform.log.records(1))
    while background.turn():
        pass
    early = len(served.platform.log.records(0)) + len(served.platform.log.records(1))
    clock.now += 60
    while background.turn():
        pass
    records = [record for n in (0, 1) for _, record in served.platform.records(n)]

    assert early == told
    assert records.count(RevocationRecord(so, id_)) == 1
    assert reads(served, bob, so) == {False}


def test_what_is_read_by_a_grant_holds_until_the_last_one_ends(
    served: Served, alice: Caller, bob: Caller, so: str
) -> None:
    """By the clock of the store, which delivery is told with the answer."""

    def holds_for(who: Caller) -> float | None:
        found = served.platform.ports.addresses.address(who.token, so, "a")
        assert found is not None
        return found.expires_in

    sql = (
        "UPDATE grants SET expires_at = extract(epoch FROM now()) * 1000 + %(ms)s"
        " WHERE id = %(id)s"
    )
    for ms, stream, use in ((5e5, "a", "read"), (9e5, None, "read"), (9e6, "a", "derive")):
        values = {"ms": ms, "id": give(alice, so, stream, use=use)}
        served.platform.database.rows(sql, values)

    assert 800 < (holds_for(bob) or 0) <= 900
    assert holds_for(alice) is None
    give(alice, so)
    assert holds_for(bob) is None


def test_readers_hold_a_stream_until_their_grant_ends(alice: Caller, bob: Caller, so: str) -> None:
    """As for readers of what is public: a stream that others compute from stays."""
    id_ = give(alice, so, use="derive")
    bob.create(reader(so))
    without = {"streams": {"b": TWO["streams"]["b"]}}

    assert alice.ask("PUT", f"/{so}", json=without).status_code == 409
    alice.ask("DELETE", f"/grants/{id_}")
    assert alice.ask("PUT", f"/{so}", json=without).status_code == 200


def test_an_end_that_did_not_reach_the_log_is_finished_by_itself(
    served: Served, alice: Caller, bob: Caller, so: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker was away, or the program was killed: no client asks for this end again."""
    assert bob.token  # the grant is for him
    id_ = give(alice, so, expiresIn=60)
    changes = served.platform.ports.changes
    later = int(NOW * 1000) + 61_000

    def away(*_: object) -> int:
        raise Unavailable("the broker does not answer")

    with monkeypatch.context() as patch:
        for name in ("append", "append_all"):
            patch.setattr(changes._log, name, away)
        with pytest.raises(Unavailable):
            changes.end_expired(later)
    changes.end_expired(later)

    records = [record for n in (0, 1) for _, record in served.platform.records(n)]
    assert records.count(RevocationRecord(so, id_)) == 1


def test_what_one_may_only_derive_from_tells_nothing_of_its_document(
    alice: Caller, bob: Caller
) -> None:
    """A group with conditions would: on whether it has this member."""
    secret = {**SIMPLE, "customFields": {"owner": "carol"}}
    for so in (alice.create(secret), alice.create(secret)):
        give(alice, so, use="derive")
    where = {"customFields.owner": "carol", "public": True}
    code = {"x": {"type": "number", "current-value": "{$all.channels.x.current-value}"}}
    composite = {
        "groups": {"all": {"where": where, "stream": "a"}},
        "streams": {"s": {"channels": code}},
    }
    reader = bob.create(composite)

    assert bob.ask("GET", f"/{reader}/groups/all").get_json()["members"] == []
