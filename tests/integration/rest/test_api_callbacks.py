"""HTTP callbacks as their owners see them: made, told once, refused for good, tried again."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from api_builders import SIMPLE, Caller, Served

from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.ports.dead_deliveries import DeadDelivery, Trouble
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
