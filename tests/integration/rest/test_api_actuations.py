"""Actuations: submitted, reported on, read."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from api_builders import NOW, SIMPLE, Caller, Served

from api.resources.actuations import MAX_STATUS
from servioticy.domain.actuations import MAX_DESCRIPTION, MAX_PARAMETERS, MAX_TIMEOUT
from servioticy.storage import actuations

ACTIONS = [{"name": "Reboot", "description": "d"}, {"name": "blink now"}]
DOCUMENT = {**SIMPLE, "actions": ACTIONS}


def submit(caller: Caller, so: str, name: str = "Reboot", body: str = "", **more: Any) -> Any:
    more = {"content_type": "text/plain", **more}
    return caller.ask("POST", f"/{so}/actuations/{name}", data=body, **more)


def device(owner: Caller, so: str) -> Caller:
    """Whoever has the token of the Service Object."""
    token = owner.ask("POST", f"/{so}/api_token").get_json()["api_token"]
    return Caller(owner.client, token)


def test_the_actions_are_an_array_as_stored(alice: Caller) -> None:
    with_actions, without = alice.create(DOCUMENT), alice.create()

    assert alice.ask("GET", f"/{with_actions}/actuations").get_json() == ACTIONS
    assert alice.ask("GET", f"/{without}/actuations").get_json() == []


def test_an_actuation_is_submitted_and_goes_through_its_states(alice: Caller) -> None:
    so = alice.create(DOCUMENT)

    made = submit(alice, so, body="in 5 s")
    id_ = made.get_json()["id"]
    path = f"/{so}/actuations/{id_}"
    first = alice.ask("GET", path)
    told = alice.ask(
        "PUT", path, data="Received on the device", content_type="application/json;charset=UTF-8"
    )
    last = alice.ask("GET", path).get_json()

    assert made.status_code == 201
    assert made.text == f'{{"message":"Actuation submitted","id":"{id_}"}}'
    assert re.fullmatch("[0-9a-f]{32}", id_)
    assert made.headers["Location"] == f"http://127.0.0.1:8080{path}"
    now = int(NOW * 1000)
    assert first.text.startswith(f'{{"status":"Submitted","updatedAt":{now}')
    assert (told.status_code, told.get_json()) == (
        201,
        {"status": "Received on the device", "updatedAt": now},
    )
    assert (last["status"], last["name"], last["parameters"]) == (
        "Received on the device",
        "Reboot",
        "in 5 s",
    )
    assert [each["status"] for each in last["states"]] == ["Submitted", "Received on the device"]


@pytest.mark.parametrize("name", ["reboot", "REBOOT", "Blink%20Now"])
def test_names_of_actions_may_have_any_case(alice: Caller, name: str) -> None:
    assert submit(alice, alice.create(DOCUMENT), name).status_code == 201


@pytest.mark.parametrize("name", ["explode", "%00", "reboot;", "__proto__", "x" * 9_000])
def test_an_unknown_action_is_not_found(alice: Caller, name: str) -> None:
    """The original failed with 500."""
    answer = submit(alice, alice.create(DOCUMENT), name)

    assert answer.status_code == 404
    assert "does not have the action" in answer.get_json()["message"]


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize("id_", ["unknown", "%00", "0" * 32])
def test_an_unknown_actuation_is_not_found(alice: Caller, method: str, id_: str) -> None:
    so = alice.create(DOCUMENT)

    assert alice.ask(method, f"/{so}/actuations/{id_}", data="x").status_code == 404


def test_an_actuation_is_found_at_its_own_object_only(alice: Caller, bob: Caller) -> None:
    mine, other, foreign = alice.create(DOCUMENT), alice.create(DOCUMENT), bob.create(DOCUMENT)
    id_ = submit(alice, mine).get_json()["id"]

    for caller, so in ((alice, other), (bob, foreign)):
        for method in ("GET", "PUT"):
            answer = caller.ask(method, f"/{so}/actuations/{id_}", data="x")
            assert answer.status_code == 404


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"", None, 201),
        (b"", "text/plain", 201),
        ("é{".encode(), "text/plain;charset=UTF-8", 201),
        (b"x" * MAX_PARAMETERS, "text/plain", 201),
        (b"x" * (MAX_PARAMETERS + 1), "text/plain", 413),
        (b"{}", "application/json", 415),
        (b"a=b", "application/x-www-form-urlencoded", 201),
        (b"\xff", "text/plain", 400),
        (b"a\0b", "text/plain", 400),
        (b"x", "text/plain;charset=utf-16", 415),
    ],
)
def test_parameters_are_text(
    alice: Caller, body: bytes, content_type: str | None, status: int
) -> None:
    so = alice.create(DOCUMENT)

    answer = alice.ask("POST", f"/{so}/actuations/reboot", data=body, content_type=content_type)

    assert answer.status_code == status


@pytest.mark.parametrize(
    ("size", "status"),
    [(0, 400), (MAX_STATUS, 201), (MAX_STATUS + 1, 413)],
)
def test_a_state_is_text(alice: Caller, size: int, status: int) -> None:
    so = alice.create(DOCUMENT)
    id_ = submit(alice, so).get_json()["id"]

    answer = alice.ask("PUT", f"/{so}/actuations/{id_}", data="x" * size)

    assert answer.status_code == status


def test_of_actuations_and_states_the_newest_are_kept(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actuations, "KEPT", 2)
    monkeypatch.setattr(actuations, "STATES_KEPT", 3)
    so = alice.create(DOCUMENT)
    made, own = [], device(alice, so)
    for _ in range(4):
        made.append(submit(alice, so).get_json()["id"])
        for n in range(4):
            own.ask("PUT", f"/{so}/actuations/{made[-1]}", data=str(n))

    found = [alice.ask("GET", f"/{so}/actuations/{each}") for each in made]

    assert [each.status_code for each in found] == [404, 404, 200, 200]
    assert [each["status"] for each in found[3].get_json()["states"]] == ["1", "2", "3"]


def test_actuations_go_with_their_object(served: Served, alice: Caller) -> None:
    so = alice.create(DOCUMENT)
    submit(alice, so)

    alice.ask("DELETE", f"/{so}")

    assert submit(alice, so).status_code == 404
    assert served.platform.database.rows("SELECT id FROM actuations") == []


def test_others_do_not_actuate_what_is_public(alice: Caller, bob: Caller) -> None:
    so = alice.create({**DOCUMENT, "public": True})
    id_ = submit(alice, so).get_json()["id"]

    assert bob.ask("GET", f"/{so}/actuations").get_json() == ACTIONS
    assert submit(bob, so).status_code == 401
    assert bob.ask("GET", f"/{so}/actuations/{id_}").status_code == 401
    assert bob.ask("PUT", f"/{so}/actuations/{id_}", data="x").status_code == 401


def read(caller: Caller, so: str, made: Any) -> dict[str, Any]:
    return caller.ask("GET", f"/{so}/actuations/{made.get_json()['id']}").get_json()


@pytest.mark.parametrize(
    ("said", "state"),
    [("Received on the device", "delivered"), ("done", "done"), ("failed: no power", "failed")],
)
def test_what_a_device_says_moves_the_state(alice: Caller, said: str, state: str) -> None:
    so, now = alice.create(DOCUMENT), int(NOW * 1000)
    made = submit(alice, so)
    assert read(alice, so, made)["state"] == "queued"

    device(alice, so).ask("PUT", f"/{so}/actuations/{made.get_json()['id']}", data=said)
    found = read(alice, so, made)

    assert (found["state"], found["status"]) == (state, said)
    assert found["times"] == {"queued": now, state: now}


@pytest.mark.parametrize("said", ["Received on the device", "done", "failed: no power"])
def test_what_others_say_is_shown_and_the_device_still_gets_it(
    served: Served, alice: Caller, said: str
) -> None:
    """At once after the actuation was submitted: nobody can have it yet."""
    so = alice.create(DOCUMENT)
    made = submit(alice, so)
    told = alice.ask("PUT", f"/{so}/actuations/{made.get_json()['id']}", data=said)
    found, key = read(alice, so, made), served.platform.stream(so, "a")

    waiting = served.platform.ports.actuations.waiting(key.tenant, [so], 10, int(NOW * 1000))
    assert (told.status_code, found["state"], found["status"]) == (201, "queued", said)
    assert [each["status"] for each in found["states"]] == ["Submitted", said]
    assert [each.id for each in waiting[so]] == [made.get_json()["id"]]


def test_of_an_actuation_that_is_delivered_others_may_say_how_it_ended(alice: Caller) -> None:
    so = alice.create(DOCUMENT)
    made = submit(alice, so)
    path = f"/{so}/actuations/{made.get_json()['id']}"
    device(alice, so).ask("PUT", path, data="got it")
    alice.ask("PUT", path, data="done")

    assert read(alice, so, made)["state"] == "done"


def test_what_has_ended_stays_whatever_is_said(alice: Caller) -> None:
    so = alice.create(DOCUMENT)
    made, own = submit(alice, so), device(alice, so)
    for said in ("failed", "done", "x"):
        own.ask("PUT", f"/{so}/actuations/{made.get_json()['id']}", data=said)

    found = read(alice, so, made)

    assert (found["state"], found["status"]) == ("failed", "x")


@pytest.mark.parametrize(
    ("query", "own", "seconds"),
    [
        ("", None, 86_400),
        ("", 60, 60),
        ("?timeout=5", 60, 5),
        (f"?timeout={MAX_TIMEOUT}", None, MAX_TIMEOUT),
    ],
)
def test_an_actuation_expires(
    served: Served, alice: Caller, query: str, own: int | None, seconds: int
) -> None:
    """When its own timeout is over, or the action's, or a day."""
    action = {"name": "blink"} | ({} if own is None else {"timeout": own})
    so = alice.create({**SIMPLE, "actions": [action]})
    made = submit(alice, so, f"blink{query}")
    found = read(alice, so, made)
    assert found["expiresAt"] == int(NOW * 1000) + seconds * 1000

    served.platform.database.rows("UPDATE actuations SET expires_at = %(at)s", {"at": int(NOW)})
    alice.ask("PUT", f"/{so}/actuations/{made.get_json()['id']}", data="done")
    found = read(alice, so, made)

    assert (found["state"], found["status"]) == ("expired", "done")
    assert found["times"]["expired"] == found["expiresAt"]


@pytest.mark.parametrize("timeout", ["0", "-1", "1.5", "x", "", "1e9", f"{MAX_TIMEOUT + 1}"])
def test_a_timeout_that_is_none_is_refused(alice: Caller, timeout: str) -> None:
    answer = submit(alice, alice.create(DOCUMENT), f"Reboot?timeout={timeout}")

    assert answer.status_code == 400
    assert "timeout has to be a whole number from 1 to 2592000" in answer.get_json()["message"]


@pytest.mark.parametrize("timeout", [0, -1, 1.5, True, "60", None, MAX_TIMEOUT + 1])
def test_a_document_with_such_a_timeout_is_refused(alice: Caller, timeout: Any) -> None:
    document = {**SIMPLE, "actions": [{"name": "a"}, {"name": "b", "timeout": timeout}]}

    answer = alice.ask("POST", "/", json=document)

    assert answer.status_code == 400
    assert answer.get_json()["pointer"] == "/actions/1/timeout"


def test_so_many_actuations_may_wait(alice: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one Service Object, and of a tenant; what is delivered waits no more."""
    monkeypatch.setattr(actuations, "MOST", 2)
    monkeypatch.setattr(actuations, "MOST_OF_TENANT", 3)
    so, other = alice.create(DOCUMENT), alice.create(DOCUMENT)
    made = [submit(alice, so) for _ in range(3)]
    assert [each.status_code for each in made] == [201, 201, 429]
    assert "Retry-After" in made[2].headers
    assert [submit(alice, other).status_code for _ in range(2)] == [201, 429]

    device(alice, so).ask("PUT", f"/{so}/actuations/{made[0].get_json()['id']}", data="x")

    assert submit(alice, other).status_code == 201


def test_what_waits_is_not_forgotten(alice: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 201 is a promise: only what need not be delivered any more makes place."""
    monkeypatch.setattr(actuations, "KEPT", 1)
    so = alice.create(DOCUMENT)
    made = [submit(alice, so) for _ in range(4)]

    assert [read(alice, so, each)["state"] for each in made] == ["queued"] * 4


def test_a_long_action_is_told_by_its_name(served: Served, alice: Caller) -> None:
    for length, members in ((1, 2), (MAX_DESCRIPTION, 1)):
        long = [{"name": "blink", "why": "x" * length}]
        submit(alice, alice.create({**SIMPLE, "actions": long}), "blink")
        ((description,),) = served.platform.database.rows(
            "SELECT description FROM actuations ORDER BY sequence DESC LIMIT 1"
        )
        assert len(orjson.loads(description)) == members


def test_those_that_were_asked_for_last_are_listed(alice: Caller, bob: Caller) -> None:
    """The latest first, as each is now; of others' nothing is told."""
    so, other = alice.create(DOCUMENT), alice.create(DOCUMENT)
    path = f"/{so}/actuations/newest"
    assert alice.ask("GET", path).get_json() == {"data": []}
    first, second = [submit(alice, so, each).get_json()["id"] for each in ("Reboot", "blink now")]
    submit(alice, other)
    device(alice, so).ask("PUT", f"/{so}/actuations/{first}", data="done: at once")

    found = alice.ask("GET", path).get_json()["data"]
    assert [(each["id"], each["name"]) for each in found] == [
        (second, "blink now"),
        (first, "Reboot"),
    ]
    assert [(each["state"], each["status"]) for each in found] == [
        ("queued", "Submitted"),
        ("done", "done: at once"),
    ]
    one = alice.ask("GET", f"/{so}/actuations/{first}").get_json()
    assert found[1] == {name: one[name] for name in found[1]}
    assert [each["id"] for each in alice.ask("GET", f"{path}?limit=1").get_json()["data"]] == [
        second
    ]
    assert alice.ask("GET", f"{path}?limit=101").status_code == 400
    assert bob.ask("GET", path).status_code == 401


def test_an_action_may_have_the_name_of_the_list(alice: Caller) -> None:
    so = alice.create({**SIMPLE, "actions": [{"name": "newest"}]})

    assert submit(alice, so, "newest").status_code == 201
