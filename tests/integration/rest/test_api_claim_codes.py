"""Claim codes: made, seen, ended."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import SIMPLE, Caller, Served
from claim_builders import KEY, a_code, claim, id_of, objects, refused
from fleet_builders import a_template, get, post


@pytest.fixture
def template(alice: Caller) -> str:
    return a_template(alice)


@pytest.mark.parametrize(
    ("wanted", "pointer"),
    [
        ({"deviceAs": None}, ""),
        ({"deviceAs": "rom"}, ""),
        ({"deviceAs": ["room"]}, ""),
        ({"deviceAs": "limit", "parameters": {"room": "x"}}, "/deviceAs"),
        ({"allowed": ["room"]}, ""),
        ({"allowed": "limit"}, "/allowed"),
        ({"parameters": {"limit": "x"}}, "/parameters/limit"),
        ({"parameters": {"room": "x"}}, ""),
        ({"parameters": 1}, "/parameters"),
        ({"count": 0}, "/count"),
        ({"count": 1001}, "/count"),
        ({"count": True}, "/count"),
        ({"uses": 10_001}, "/uses"),
        ({"expiresIn": 0}, "/expiresIn"),
        ({"devices": []}, "/devices"),
        ({"devices": ["a", "a"]}, "/devices"),
        ({"devices": ["a", "\0"]}, "/devices/1"),
        ({"devices": ["a"], "count": 2}, "/count"),
        ({"devices": ["a", "b"], "uses": 1}, "/uses"),
        ({"devicePattern": ""}, "/devicePattern"),
    ],
)
def test_codes_that_cannot_be(
    wanted: dict[str, Any], pointer: str, alice: Caller, template: str
) -> None:
    body = {"deviceAs": "room"} | wanted

    answer = alice.ask("POST", f"/templates/{template}/claim-codes", json=body)

    assert (answer.status_code, answer.get_json()["pointer"]) == (400, pointer)
    assert get(alice, "/claim-codes") == {"data": []}


def test_codes_of_a_service_object_have_no_parameters_and_fewer_uses(alice: Caller) -> None:
    so = alice.create()
    bad = ({"allowed": []}, "/allowed"), ({"uses": 101}, "/uses"), ({"count": 101}, "/count")
    for wanted, pointer in (*bad, ({"count": 51, "uses": 2}, "/count")):
        answer = alice.ask("POST", f"/{so}/claim-codes", json=wanted)
        assert (answer.status_code, answer.get_json()["pointer"]) == (400, pointer)


def test_the_codes_of_a_service_object_have_so_many_uses_together(
    served: Served, alice: Caller
) -> None:
    """Of another one others; and those that have ended do not count."""
    so, other = alice.create(), alice.create()
    post(alice, f"/{so}/claim-codes", {"count": 50, "uses": 2}, 201)

    assert alice.ask("POST", f"/{so}/claim-codes").status_code == 409
    post(alice, f"/{other}/claim-codes", {"uses": 100}, 201)
    served.platform.database.rows("UPDATE claim_codes SET expires_at = now()")
    post(alice, f"/{so}/claim-codes", {"uses": 100}, 201)


def test_a_tenant_sees_its_codes_and_who_has_claimed(
    served: Served, alice: Caller, bob: Caller, template: str
) -> None:
    """The codes themselves are told once, and stored nowhere."""
    code = a_code(alice, template, devices=["a", "b"])
    made = claim(served, code, "a").get_json()

    (told,) = get(alice, "/claim-codes")["data"]

    assert (told["uses"], told["used"], told["listed"]) == (2, 1, True)
    assert get(alice, f"/claim-codes/{told['id']}") == told
    claims = get(alice, f"/claim-codes/{told['id']}/claims")["data"]
    assert [each["device"] for each in claims] == ["a", "b"]
    assert [each.get("serviceObject") for each in claims] == [made["id"], None]
    assert get(bob, "/claim-codes") == {"data": []}
    for path in ("", "/claims"):
        assert bob.ask("GET", f"/claim-codes/{told['id']}{path}").status_code == 404
    assert bob.ask("DELETE", f"/claim-codes/{told['id']}").status_code == 404
    database = served.platform.database
    for (table,) in database.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
        rows = database.rows(f"SELECT t::text FROM {table} AS t")
        for secret in (code, code.replace("-", ""), KEY, made["api_token"]):
            assert not any(secret in text for (text,) in rows)


def test_the_token_of_one_device_is_revoked(served: Served, alice: Caller) -> None:
    """By the id that the list of claims tells; the others of its Service Object go on."""
    so = alice.create()
    made = post(alice, f"/{so}/claim-codes", {"uses": 2}, 201)["claimCodes"][0]
    one, other = (
        Caller(alice.client, claim(served, made["code"], each).get_json()["api_token"])
        for each in ("one", "other")
    )
    first, _second = get(alice, f"/claim-codes/{made['id']}/claims")["data"]

    assert alice.ask("DELETE", f"/tokens/{first['token']}").status_code == 204

    assert (one.put(so).status_code, other.put(so).status_code) == (403, 202)


def test_a_code_that_has_ended_is_as_if_there_were_none(
    served: Served, alice: Caller, template: str
) -> None:
    """Revoked, expired, of a template that is gone, or never there."""
    revoked, expired, gone = (a_code(alice, template) for _ in range(3))
    path = f"/claim-codes/{id_of(served, revoked)}"
    assert alice.ask("DELETE", path).status_code == 204
    past = "UPDATE claim_codes SET expires_at = now() WHERE id = %(id)s"
    served.platform.database.rows(past, {"id": id_of(served, expired)})
    assert alice.ask("DELETE", f"/templates/{template}").status_code == 204

    answers = {refused(claim(served, each)) for each in (revoked, expired, gone, "7" * 20)}

    assert answers == {(404, "There is no such claim code, or it has ended.")}
    assert objects(alice) == []


def test_all_codes_of_a_tenant_have_so_many_uses(
    served: Served, alice: Caller, template: str
) -> None:
    """Those that have ended long ago count no more."""
    path = f"/templates/{template}/claim-codes"
    post(alice, path, {"deviceAs": "room", "count": 10, "uses": 10_000}, 201)

    assert alice.ask("POST", path, json={"deviceAs": "room"}).status_code == 409
    served.platform.database.rows("UPDATE claim_codes SET expires_at = now() - interval '31 days'")
    assert alice.ask("POST", path, json={"deviceAs": "room"}).status_code == 201
    assert len(get(alice, "/claim-codes")["data"]) == 1


def test_the_audit_log_tells_of_codes(served: Served, alice: Caller, template: str) -> None:
    code = a_code(alice, template)
    made = claim(served, code).get_json()
    (told,) = get(alice, "/claim-codes")["data"]
    alice.ask("DELETE", f"/claim-codes/{told['id']}")

    entries = get(alice, "/audit")["data"]

    done = [each["action"] for each in entries if each["kind"] == "claim code"]
    assert done == ["revoked", "used", "made"]
    (creation,) = (each for each in entries if each["id"] == made["id"])
    assert (creation["by"], creation["token"]) == ("tenant", f"claim-code:{told['id']}")


def test_only_who_may_make_objects_or_change_one_makes_codes(alice: Caller, template: str) -> None:
    so = alice.create(SIMPLE)
    made = alice.ask("POST", "/tokens", json={"name": "n", "rights": ["list", "read", "send"]})
    reader = Caller(alice.client, made.get_json()["token"])

    assert reader.ask("POST", f"/templates/{template}/claim-codes").status_code == 403
    assert reader.ask("POST", f"/{so}/claim-codes").status_code == 403
