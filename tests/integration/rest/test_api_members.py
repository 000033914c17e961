"""Members of a tenant: who they are, what each may do, and how they come and go."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import SIMPLE, UPDATE, Caller, Served
from member_builders import Json, added, person
from token_issuer import ISSUER, TokenIssuer

from servioticy.domain.access import OF_ROLES, MemberRole, Right
from servioticy.storage.quotas import PostgresQuotas


@pytest.fixture
def so(alice: Caller) -> str:
    return alice.create()


def members(caller: Caller) -> list[Json]:
    found: list[Json] = caller.ask("GET", "/members").get_json()["members"]
    return found


def test_a_member_is_added_listed_changed_and_removed(alice: Caller, bob: Caller) -> None:
    one = added(alice, subject="c", name="Carol", email="carol@example.org", role="viewer")
    assert {key: one[key] for key in one.keys() - {"id", "createdAt"}} == {
        "issuer": ISSUER,
        "subject": "c",
        "name": "Carol",
        "email": "carol@example.org",
        "role": "viewer",
    }
    assert (members(alice), members(bob)) == ([one], [])

    path = f"/members/{one['id']}"
    answer = alice.ask("PATCH", path, json={"role": "operator", "email": ""})
    assert answer.status_code == 200
    changed = {**one, "role": "operator"}
    del changed["email"]
    assert members(alice) == [answer.get_json()] == [changed]
    assert alice.ask("PATCH", path, json={}).get_json() == changed

    assert alice.ask("DELETE", path).status_code == 204
    assert members(alice) == []
    assert alice.ask("DELETE", path).status_code == 404
    assert alice.ask("PATCH", path, json={"role": "viewer"}).status_code == 404


ENDING = [("DELETE", {}), ("PATCH", {"json": {"role": "developer"}})]
RIGHTS: list[tuple[Right, str, str, Json, int]] = [
    (Right.LIST, "GET", "/", {}, 200),
    (Right.READ, "GET", "/{so}", {}, 200),
    (Right.SUBSCRIBE, "POST", "/{so}/streams/a/subscriptions", {"callback": "pull"}, 201),
    (Right.INSPECT, "GET", "/{so}/versions", {}, 200),
    (Right.SEND, "PUT", "/{so}/streams/a", {}, 202),
    (Right.ACTUATE, "GET", "/{so}/actuations/none", {}, 404),
    (Right.CREATE, "POST", "/", SIMPLE, 201),
    (Right.CHANGE, "DELETE", "/{so}/streams/a", {}, 204),
    (Right.ADMIN, "GET", "/members", {}, 200),
]


@pytest.mark.parametrize("role", MemberRole)
def test_a_member_may_do_what_its_role_is_for_and_nothing_else(
    role: MemberRole, alice: Caller, so: str, served: Served, issuer: TokenIssuer
) -> None:
    added(alice, role=role.value)
    carol = person(served, issuer.token("carol"))

    found = {}
    for right, method, path, body, _ in RIGHTS:
        sent: Json = {"json": body} if body else {}
        sent = {"data": UPDATE} if right is Right.SEND else sent
        found[right] = carol.ask(method, path.format(so=so), **sent).status_code

    assert {right for right, *_ in RIGHTS} == set(Right)
    assert found == {
        right: status if right in OF_ROLES[role] else 403 for right, *_, status in RIGHTS
    }


def test_what_a_member_does_is_told_in_the_audit_log(
    alice: Caller, served: Served, issuer: TokenIssuer
) -> None:
    """With the id of the member, and nothing of who it is."""
    one = added(alice)
    carol = person(served, issuer.token("carol"))
    two = added(carol, subject="dave")
    carol.ask("PATCH", f"/members/{two['id']}", json={"role": "viewer"})
    carol.ask("DELETE", f"/members/{two['id']}")

    log = carol.ask("GET", "/audit").get_json()["data"]
    mine = [each for each in reversed(log) if each["kind"] == "member"]
    assert [(each["action"], each["id"], each.get("member")) for each in mine] == [
        ("added", one["id"], None),
        ("added", two["id"], one["id"]),
        ("changed", two["id"], one["id"]),
        ("removed", two["id"], one["id"]),
    ]
    assert "token" in mine[0] and "token" not in mine[1]
    assert "carol" not in str(log) and "dave" not in str(log)


def test_from_the_next_request_on_who_is_removed_is_no_member(
    alice: Caller, so: str, served: Served, issuer: TokenIssuer
) -> None:
    one = added(alice, role="operator")
    carol = person(served, issuer.token("carol"))
    assert carol.put(so).status_code == 202

    alice.ask("PATCH", f"/members/{one['id']}", json={"role": "viewer"})
    assert carol.put(so).status_code == 403
    assert carol.ask("GET", f"/{so}").status_code == 200
    alice.ask("DELETE", f"/members/{one['id']}")
    answer = carol.ask("GET", f"/{so}")
    assert answer.status_code == 403
    assert answer.get_json()["message"] == (
        f"carol of {ISSUER} is no member of the tenant alice: an admin of it adds members"
        " (POST /members)"
    )


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"subject": None}, ""),
        ({"subject": ""}, "/subject"),
        ({"subject": 5}, "/subject"),
        ({"subject": "a\0"}, "/subject"),
        ({"subject": "x" * 256}, "/subject"),
        ({"issuer": "https://evil.example.org"}, "/issuer"),
        ({"issuer": [ISSUER]}, "/issuer"),
        ({"issuer": None}, ""),
        ({"role": "owner"}, "/role"),
        ({"role": None}, "/role"),
        ({"role": ["admin"]}, "/role"),
        ({"name": 5}, "/name"),
        ({"name": "x" * 201}, "/name"),
        ({"email": "a\0"}, "/email"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(alice: Caller, wrong: Any, pointer: str) -> None:
    answer = alice.ask("POST", "/members", json={"subject": "s", "role": "viewer"} | wrong)

    assert (answer.status_code, answer.get_json()["pointer"]) == (400, pointer)


@pytest.mark.parametrize("lacking", ["subject", "role"])
def test_what_is_lacking_is_said(alice: Caller, lacking: str) -> None:
    wanted = {"subject": "s", "role": "viewer"}
    del wanted[lacking]
    answer = alice.ask("POST", "/members", json=wanted)

    assert (answer.status_code, answer.get_json()["code"]) == (400, "required")


def test_a_person_is_a_member_once_and_of_as_many_tenants_as_want_it(
    alice: Caller, bob: Caller
) -> None:
    added(alice)
    again = alice.ask("POST", "/members", json={"subject": "carol", "role": "viewer"})
    assert again.status_code == 409
    added(bob)


def test_there_are_as_many_as_the_quota_says(alice: Caller, served: Served) -> None:
    quotas = PostgresQuotas(served.platform.database)
    quotas.give("alice", "members", 2)
    for subject in ("c", "d"):
        added(alice, subject=subject)

    answer = alice.ask("POST", "/members", json={"subject": "e", "role": "viewer"})

    assert answer.status_code == 429
    assert answer.get_json()["quota"] == {"name": "members", "limit": 2, "unit": "members"}


def test_members_come_a_page_at_a_time(alice: Caller) -> None:
    ids = {added(alice, subject=f"s{n}", role="viewer")["id"] for n in range(103)}

    first = alice.ask("GET", "/members").get_json()
    rest = alice.ask("GET", "/members", query_string={"after": first["next"]}).get_json()

    assert {each["id"] for each in first["members"] + rest["members"]} == ids
    assert (len(first["members"]), "next" in rest) == (100, False)


@pytest.mark.parametrize(("method", "sent"), ENDING, ids=["remove", "change"])
def test_members_of_others_are_not_there(
    alice: Caller, bob: Caller, method: str, sent: Json
) -> None:
    theirs = added(bob)

    assert alice.ask(method, f"/members/{theirs['id']}", **sent).status_code == 404
    assert members(bob) == [theirs]
