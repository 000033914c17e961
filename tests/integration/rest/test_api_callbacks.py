"""HTTP callbacks as their owners see them: made, told once, refused for good, tried again."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from api_builders import NOW, SIMPLE, Caller, Served

from api.resources.callback_tests import MOST_WAITING
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.ports.cursors import StoredCursor
from servioticy.ports.dead_deliveries import DeadDelivery, Trouble
from servioticy.storage import dead_deliveries
from servioticy.storage.callback_tests import PostgresCallbackTests
from servioticy.storage.cursors import PostgresCursors
from servioticy.storage.dead_deliveries import PostgresDeadDeliveries

HTTP = {"callback": "http", "destination": "http://example.org/in"}


def subscribe(caller: Caller, so: str, **body: Any) -> Any:
    return caller.ask("POST", f"/{so}/streams/a/subscriptions", json=HTTP | body)


@pytest.fixture
def so(alice: Caller) -> str:
    return alice.create()


@pytest.fixture
def cursors(served: Served) -> PostgresCursors:
    return PostgresCursors(served.platform.database)


def test_a_secret_is_told_once(alice: Caller, so: str, cursors: PostgresCursors) -> None:
    answer = subscribe(alice, so).get_json()
    id_ = answer["id"]

    told = alice.ask("GET", f"/subscriptions/{id_}").get_json()
    (stored,) = cursors.subscriptions([id_])

    assert answer["secret"].startswith("whsec_")
    assert "secret" not in str(told)
    assert orjson.loads(stored.document)["secrets"] == [{"secret": answer["secret"]}]
    assert told["state"] == "active"
    assert told["format"] == "plain"
    assert "delivered" not in told


def test_a_new_secret_does_not_end_the_old_one(
    alice: Caller, so: str, cursors: PostgresCursors
) -> None:
    first = subscribe(alice, so).get_json()
    before = cursors.changes()
    second = alice.ask("POST", f"/subscriptions/{first['id']}/secret")

    (stored,) = cursors.subscriptions([first["id"]])
    secrets = orjson.loads(stored.document)["secrets"]
    assert second.status_code == 201
    assert [each["secret"] for each in secrets] == [second.get_json()["secret"], first["secret"]]
    assert "until" in secrets[1]
    assert cursors.changes() != before


@pytest.mark.parametrize(
    ("begin", "history"), [("latest", None), ("beginning", -1), (100, 99), (0, -1)]
)
def test_it_begins_where_it_is_asked_to(
    alice: Caller, so: str, cursors: PostgresCursors, begin: Any, history: int | None
) -> None:
    id_ = subscribe(alice, so, **{"from": begin}).get_json()["id"]

    (stored,) = cursors.subscriptions([id_])
    stream = StreamRef(so, "a")
    assert stored.cursor.history == ({} if history is None else {stream: history})
    assert bool(stored.cursor.since) is (history is None)


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"from": -1}, "/from"),
        ({"from": "yesterday"}, "/from"),
        ({"from": True}, "/from"),
        ({"from": 2**63}, "/from"),
        ({"format": "xml"}, "/format"),
        ({"secret": "mine"}, "/secret"),
        ({"secret": "whsec_AAAA"}, "/secret"),
        ({"secret": 5}, "/secret"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    alice: Caller, so: str, wrong: dict[str, Any], pointer: str
) -> None:
    answer = subscribe(alice, so, **wrong)

    assert answer.status_code == 400
    assert answer.get_json()["pointer"] == pointer


def test_a_receiver_that_was_stopped_is_called_again(
    alice: Caller, so: str, served: Served, cursors: PostgresCursors
) -> None:
    id_ = subscribe(alice, so).get_json()["id"]
    (stored,) = cursors.subscriptions([id_])
    dead = PostgresDeadDeliveries(served.platform.database)
    dead.trouble(stored.tenant, id_, Trouble(1, 1, 410, "gone\0"), stop=True)
    told = alice.ask("GET", f"/subscriptions/{id_}").get_json()

    assert (told["state"], told["trouble"]["status"]) == ("stopped", 410)
    assert cursors.changes() == {}

    assert alice.ask("POST", f"/subscriptions/{id_}/resume").status_code == 204

    told = alice.ask("GET", f"/subscriptions/{id_}").get_json()
    assert told["state"] == "active"
    assert "trouble" not in told
    assert cursors.changes().keys() == {id_}


def test_what_is_dead_is_listed_and_delivered_once_more(
    alice: Caller, so: str, served: Served, cursors: PostgresCursors
) -> None:
    id_ = subscribe(alice, so).get_json()["id"]
    (stored,) = cursors.subscriptions([id_])
    dead = PostgresDeadDeliveries(served.platform.database)
    for at in range(150):
        update = LastUpdate(at, b'{"lastUpdate":%d}' % at)
        dead.bury(stored.tenant, id_, DeadDelivery(str(at), StreamRef(so, "a"), update), "422", 7)
    path = f"/subscriptions/{id_}/dead-deliveries"

    first = alice.ask("GET", path).get_json()
    rest = alice.ask("GET", f"{path}?after={first['next']}").get_json()

    found = first["deadDeliveries"] + rest["deadDeliveries"]
    assert [each["update"] for each in found] == [{"lastUpdate": at} for at in range(150)]
    assert "next" not in rest
    assert alice.ask("GET", f"{path}?after=x").status_code == 400

    answer = alice.ask("POST", f"{path}/redrive")

    assert (answer.status_code, answer.get_json()) == (202, {"redriven": 150})
    assert len(dead.to_redrive(stored.tenant, id_)) == 100
    dead.revived(stored.tenant, id_, "0")
    assert dead.to_redrive(stored.tenant, id_)[0].id == "1"


def test_the_dead_of_all_subscriptions_of_a_tenant_have_so_many_bytes(
    alice: Caller,
    bob: Caller,
    served: Served,
    cursors: PostgresCursors,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The oldest go, whosesoever subscription of it they are; nobody else's do."""
    size, kept = 10_000, 20
    monkeypatch.setattr(dead_deliveries, "MAX_BYTES", kept * (size + dead_deliveries.ROW_BYTES))
    dead = PostgresDeadDeliveries(served.platform.database)
    document = orjson.dumps({"lastUpdate": 1, "x": "y" * size})[:-2][: size - 2] + b'"}'
    names: dict[str, list[str]] = {}

    def bury(caller: Caller, count: int) -> None:
        (stored,) = cursors.subscriptions([names[caller.token][-1]])
        for at in range(count):
            what = DeadDelivery(f"{at}", StreamRef("so", "a"), LastUpdate(at, document))
            dead.bury(stored.tenant, stored.id, what, "422", 7)

    def listed(caller: Caller) -> list[int]:
        path = "/subscriptions/{}/dead-deliveries"
        told = [caller.ask("GET", path.format(each)).get_json() for each in names[caller.token]]
        return [len(each["deadDeliveries"]) for each in told]

    for caller, counts in ((bob, (30,)), (alice, (12, 40))):
        for count in counts:
            so = caller.create(SIMPLE)
            names.setdefault(caller.token, []).append(subscribe(caller, so).get_json()["id"])
            bury(caller, count)
    beyond = dead_deliveries.LOOKED_FOR - 1

    first, second = listed(alice)
    assert (first, kept <= second <= kept + beyond) == (0, True)
    assert kept <= listed(bob)[0] <= 30


@pytest.mark.parametrize("path", ["/secret", "/resume", "/dead-deliveries/redrive"])
def test_what_others_subscribe_is_not_mine_to_change(
    alice: Caller, bob: Caller, path: str
) -> None:
    """Not even where it is my stream."""
    so = alice.create(SIMPLE | {"public": "true"})
    theirs = subscribe(bob, so).get_json()["id"]
    other = alice.ask("POST", f"/{so}/streams/a/subscriptions", json={"callback": "websocket"})

    assert alice.ask("POST", f"/subscriptions/{theirs}{path}").status_code == 401
    assert alice.ask("POST", f"/subscriptions/{other.get_json()['id']}{path}").status_code == 404
    assert alice.ask("POST", f"/subscriptions/nothing{path}").status_code == 404
    assert bob.ask("POST", f"/subscriptions/{theirs}{path}").status_code < 300


NOW_MS = int(NOW * 1000)


def test_a_test_is_sent_once_and_tells_what_came_of_it(
    alice: Caller, so: str, served: Served
) -> None:
    id_ = subscribe(alice, so).get_json()["id"]
    tests = PostgresCallbackTests(served.platform.database)
    place = f"/subscriptions/{id_}/test"
    assert alice.ask("GET", place).status_code == 404

    asked = alice.ask("POST", place)
    assert (asked.status_code, asked.get_json()["state"]) == (202, "asked")
    assert alice.ask("POST", place).status_code == 409
    (taken,) = tests.take(9, NOW_MS)
    assert tests.take(9, NOW_MS) == []
    assert alice.ask("GET", place).get_json()["state"] == "sent"
    assert (taken.subscription, taken.stream) == (id_, StreamRef(so, "a"))
    update = orjson.loads(taken.update.document)
    assert (update["test"], update["lastUpdate"]) == (True, NOW_MS)
    assert update["channels"].keys() == SIMPLE["streams"]["a"]["channels"].keys()

    tests.answered(taken, 503, "not\0now", 12)
    told = alice.ask("GET", place).get_json()
    assert (told["state"], told["status"], told["milliseconds"]) == ("answered", 503, 12)
    assert told["reason"] == "not\ufffdnow"
    assert alice.ask("POST", place).status_code == 202


def test_a_test_that_nobody_sends_in_time_is_lost(alice: Caller, so: str, served: Served) -> None:
    id_ = subscribe(alice, so).get_json()["id"]
    alice.ask("POST", f"/subscriptions/{id_}/test")
    served.platform.database.rows("UPDATE callback_tests SET asked_at = asked_at - 61000")

    assert PostgresCallbackTests(served.platform.database).take(9, NOW_MS) == []
    assert alice.ask("GET", f"/subscriptions/{id_}/test").get_json()["state"] == "lost"
    assert alice.ask("POST", f"/subscriptions/{id_}/test").status_code == 202


def test_a_tenant_has_so_many_tests_under_way(alice: Caller, so: str) -> None:
    ids = [subscribe(alice, so).get_json()["id"] for _ in range(MOST_WAITING + 1)]
    statuses = [alice.ask("POST", f"/subscriptions/{each}/test").status_code for each in ids]

    assert statuses == [202] * MOST_WAITING + [409]


def test_only_its_tenant_may_test_what_calls_somebody(alice: Caller, bob: Caller, so: str) -> None:
    id_ = subscribe(alice, so).get_json()["id"]
    answer = alice.ask("POST", f"/{so}/streams/a/subscriptions", json={"callback": "websocket"})

    assert bob.ask("POST", f"/subscriptions/{id_}/test").status_code == 401
    place = f"/subscriptions/{answer.get_json()['id']}/test"
    assert alice.ask("POST", place).status_code == 404


def test_what_a_subscription_does_can_be_changed_and_its_place_stays(
    alice: Caller, so: str, cursors: PostgresCursors
) -> None:
    id_ = subscribe(alice, so).get_json()["id"]
    cursors.store({id_: StoredCursor({0: 4, 1: 20})})
    before = cursors.changes()
    place = f"/subscriptions/{id_}"
    moved = {"destination": "https://example.org/moved", "format": "cloudevents"}

    assert alice.ask("PUT", place, json=moved).status_code == 200

    (stored,) = cursors.subscriptions([id_])
    document = orjson.loads(stored.document)
    assert (document["destination"], document["format"]) == tuple(moved.values())
    assert document["secrets"]
    assert stored.cursor == StoredCursor({0: 4, 1: 20})
    assert cursors.changes() != before
    told = alice.ask("GET", place).get_json()
    assert (told["position"], told["lag"]) == ({"0": 4, "1": 20}, 6)


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"destination": "ftp://example.org/"}, "/destination"),
        ({"destination": None}, ""),
        ({"format": "xml"}, "/format"),
        ({"expire": -1}, "/expire"),
        ({"expire": "soon"}, "/expire"),
        ({"callback": "pubsub"}, "/callback"),
    ],
)
def test_a_change_is_checked_as_a_new_one(
    alice: Caller, so: str, wrong: dict[str, Any], pointer: str
) -> None:
    id_ = subscribe(alice, so).get_json()["id"]
    answer = alice.ask("PUT", f"/subscriptions/{id_}", json=wrong)

    assert answer.status_code == 400
    assert answer.get_json().get("pointer", "") == pointer


def test_a_subscription_ends_when_it_expires(
    alice: Caller, so: str, cursors: PostgresCursors
) -> None:
    """By the clock of Postgres, which is not the one of this test."""
    past, future = (subscribe(alice, so, expire=at).get_json()["id"] for at in (5, 2**62))
    assert cursors.changes().keys() == {future}
    assert alice.ask("GET", f"/subscriptions/{past}").get_json()["state"] == "expired"

    alice.ask("PUT", f"/subscriptions/{past}", json={"expire": 0})
    assert cursors.changes().keys() == {past, future}
    assert alice.ask("GET", f"/subscriptions/{past}").get_json()["state"] == "active"


def test_only_its_tenant_may_change_it(alice: Caller, bob: Caller, so: str) -> None:
    id_ = subscribe(alice, so).get_json()["id"]
    assert bob.ask("PUT", f"/subscriptions/{id_}", json={"format": "plain"}).status_code == 401
