"""The isolation run: every route of the API for everybody who may not use it.

Another tenant, nobody, expired, revoked, of another right or Service Object, a member with a role,
a person of another tenant or of none: nothing of the owner's is shown or changed, and what is
another's looks like what is not there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from api_builders import NOW, SIMPLE, Caller, Platform, Served, SwitchedDatabase
from contract_world import NOW_MS, OPERATIONS, Route, World, a_world, ask, body
from token_issuer import ISSUER, OIDC, TokenIssuer
from werkzeug.test import TestResponse

from api.app import create_app
from sandbox.text import argument_names
from servioticy.domain.access import OF_ROLES, OF_TENANTS, MemberRole, Right
from servioticy.identity.addresses import AddressesOfPersons
from servioticy.settings import Settings, changed

GUARDED: list[Route] = [each for each, its in OPERATIONS.items() if its["x-right"] != "none"]
NOT_401 = ("template", "job", "token", "member", "claim_code")
"""Named by our routes only: what is another's is as if it were not there."""
WITH_401 = {
    "so": "the original said 401 of a Service Object of others and 404 of none; clients tell them",
    "id": "the same of subscriptions",
    "group": "the same of Service Objects that groups name: it can be told by a GET of them",
}
MADE_HERE = ("/tokens", "/audit", "/members")
"""What tells of the tokens and members that tests make."""
OWN_DOINGS = re.compile(
    rb'"name":"(?:read-seconds|tokens|document-bytes)",[^}]*|"readSeconds":[0-9.e-]+'
)
"""What looking at all of it has used of the quota of reads; what tests make of their own."""
WRONG_TOKEN = "The web object has presented the wrong API_TOKEN"
OBJECTS_TOO = [each for each in Right if each not in OF_TENANTS]


@pytest.fixture(scope="module")
def issuer() -> TokenIssuer:
    return TokenIssuer()


@pytest.fixture(scope="module")
def served(database: SwitchedDatabase, issuer: TokenIssuer) -> Served:
    backend = Platform(database)
    addresses = AddressesOfPersons(backend.ports.addresses, issuer.tokens(), clock=issuer.clock)
    backend.ports = replace(backend.ports, addresses=addresses)
    settings = changed(Settings(), read_wait_seconds=0.0, operators_protection="any", **OIDC)
    return Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)


@pytest.fixture(scope="module")
def world(served: Served) -> World:
    return a_world(served)


@pytest.fixture(scope="module")
def bob(served: Served) -> Caller:
    return served.tenant("bob")


@pytest.fixture(scope="module", params=["token", "person"])
def another(
    request: pytest.FixtureRequest, bob: Caller, served: Served, issuer: TokenIssuer
) -> Caller:
    """Another tenant, by its token and by an admin among its members."""
    if request.param == "token":
        return bob
    add_member(bob, "bob himself", MemberRole.ADMIN)
    return a_person(served, issuer.token("bob himself"), "bob")


def add_member(tenant: Caller, subject: str, role: MemberRole) -> str:
    wanted = {"subject": subject, "role": role.value}
    answer = tenant.ask("POST", "/members", json=wanted)
    assert answer.status_code == 201, answer.text
    return str(answer.get_json()["id"])


@pytest.fixture(scope="module")
def persons(world: World, bob: Caller) -> None:
    """One of another tenant, one that was removed here, and two whose tokens do not count."""
    add_member(bob, "of another", MemberRole.ADMIN)
    for who in ("removed", "expired", "forged"):
        id_ = add_member(world.tenant, who, MemberRole.ADMIN)
        if who == "removed":
            world.tenant.ask("DELETE", f"/members/{id_}")


def a_person(served: Served, token: str, tenant: str) -> Caller:
    return Caller(served.app.test_client(), f"Bearer {tenant}~{token}")


@pytest.fixture
def unchanged(world: World) -> Iterator[None]:
    """Whatever is tried, the owner finds all as it was before."""

    def found() -> list[tuple[str, int, bytes]]:
        asked = [each for each in OPERATIONS if each[0] == "GET" and each[1] not in MADE_HERE]
        answers = [(path, ask(world.tenant, ("GET", path), world.names)) for _, path in asked]
        return [(path, each.status_code, OWN_DOINGS.sub(b"", each.data)) for path, each in answers]

    before = found()
    yield
    assert found() == before


def a_token(world: World, served: Served, **wanted: Any) -> Caller:
    made = world.tenant.ask("POST", "/tokens", json={"name": "of this test", **wanted})
    assert made.status_code == 201, made.text
    return Caller(served.app.test_client(), made.get_json()["token"])


def told(answer: TestResponse) -> tuple[int, Any]:
    """What the answer says, but for the number of the request."""
    body = answer.get_json()
    assert answer.status_code == body["status"]
    return answer.status_code, body["message"]


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("identity", ["nobody", "forged", "expired", "revoked", "rotated"])
def test_who_is_not_known_is_refused_everywhere(
    identity: str, world: World, served: Served
) -> None:
    """All in the same words: which tokens there were is nobody's business."""
    caller = Caller(served.app.test_client(), "" if identity == "nobody" else "x" * 43)
    if identity in ("expired", "revoked", "rotated"):
        caller = a_token(world, served)
        listed = world.tenant.ask("GET", "/tokens").get_json()["tokens"]
        id_ = next(each["id"] for each in listed if each["name"] == "of this test")
        if identity == "expired":
            past = "UPDATE tokens SET expires_at = now() - interval '1 second' WHERE id = %(id)s"
            served.platform.database.rows(past, {"id": id_})
        elif identity == "revoked":
            world.tenant.ask("DELETE", f"/tokens/{id_}")
        else:
            made = world.tenant.ask("POST", f"/tokens/{id_}/rotation").get_json()
            world.tenant.ask("DELETE", f"/tokens/{made['id']}")
    said = "Missing Authorization Header" if identity == "nobody" else "Access was denied!"

    answers = {route: told(ask(caller, route, world.names)) for route in GUARDED}

    assert answers == dict.fromkeys(GUARDED, (403, said))


@pytest.mark.parametrize("right", Right)
def test_a_token_without_the_right_is_refused(right: Right, world: World, served: Served) -> None:
    """And one with that right alone everywhere else."""
    own = [route for route in GUARDED if OPERATIONS[route]["x-right"] == right.value]
    others = [each.value for each in Right if each is not right]
    without = a_token(world, served, rights=others)
    only = a_token(world, served, rights=[right.value])
    wrong = [(without, route) for route in own]
    wrong += [(only, route) for route in GUARDED if route not in own]

    refused = {route: told(ask(caller, route, world.names)) for caller, route in wrong}

    assert refused == {route: (403, WRONG_TOKEN) for _, route in wrong}


@pytest.mark.parametrize("role", MemberRole)
def test_a_member_without_the_right_is_refused(
    role: MemberRole, world: World, served: Served, issuer: TokenIssuer
) -> None:
    """Whatever else its tenant may do."""
    add_member(world.tenant, f"a {role.value}", role)
    caller = a_person(served, issuer.token(f"a {role.value}"), "examples")
    others = [
        route for route in GUARDED if Right(OPERATIONS[route]["x-right"]) not in OF_ROLES[role]
    ]

    refused = {route: told(ask(caller, route, world.names)) for route in others}

    assert refused == dict.fromkeys(others, (403, WRONG_TOKEN))
    assert bool(others) is (role is not MemberRole.ADMIN)


@pytest.mark.usefixtures("persons", "unchanged")
@pytest.mark.parametrize("who", ["of no tenant", "of another", "removed", "expired", "forged"])
def test_a_person_that_is_no_member_is_refused_everywhere(
    who: str, world: World, served: Served, issuer: TokenIssuer
) -> None:
    """Though the issuer vouches for it; and what it claims for itself makes it no member."""
    more: dict[str, Any] = {"tenant": "examples", "role": "admin", "groups": ["examples"]}
    if who == "expired":
        more["exp"] = int(issuer.clock.now)
    made = TokenIssuer() if who == "forged" else issuer
    token = made.token(who, **more)
    caller, nobodys = (a_person(served, token, each) for each in ("examples", "nobodys"))

    answers = {route: told(ask(caller, route, world.names)) for route in GUARDED}

    said = told(nobodys.ask("GET", "/"))[1].replace("nobodys", "examples")
    assert answers == dict.fromkeys(GUARDED, (403, said))
    assert ("not accepted" if who in ("expired", "forged") else ISSUER) in said


@pytest.mark.usefixtures("unchanged")
def test_a_token_of_one_service_object_is_good_for_no_other(world: World, served: Served) -> None:
    """Not even to learn which there are."""
    so = world.tenant.create(SIMPLE)
    caller = a_token(world, served, serviceObject=so, rights=[each.value for each in OBJECTS_TOO])
    world.tenant.ask("DELETE", f"/{so}")
    again = a_token(world, served, serviceObject=world.names["so"], rights=["send"])
    nothing = {**world.names, "so": "0" * 45}

    for who, names in ((caller, world.names), (again, nothing)):
        answers = {route: ask(who, route, names).status_code for route in GUARDED}
        assert answers == dict.fromkeys(GUARDED, 403)


@pytest.mark.usefixtures("unchanged")
def test_another_tenant_gets_nothing_of_it(world: World, another: Caller) -> None:
    """What is refused names nothing, and is the same as of what does not exist."""
    secret = [each for each in world.names.values() if len(each) > 20]
    for route in GUARDED:
        named = {name for name in ("so", "id", *NOT_401) if f"{{{name}}}" in route[1]}
        answer = ask(another, route, world.names)
        sent = str(body(world, route).get("data", ""))
        if named:
            assert 400 <= answer.status_code < 500, (route, answer.text)
        for each in secret:
            assert each in sent or each not in answer.get_data(as_text=True), (route, each)
        if named & WITH_401.keys():
            assert told(answer) == (401, "Not authorized"), route
        for name in named & set(NOT_401):
            nothing = {**world.names, name: "0" * len(world.names[name])}
            assert told(answer) == told(ask(another, route, nothing)), route


GROUP = {
    "streams": {"b": {"channels": {"x": {"type": "number", "current-value": "{$g.x}"}}}},
    "groups": {"g": {"soIds": ["{so}"], "stream": "celsius"}},
}
NAMING: list[tuple[str, str, Any]] = [
    ("POST", "/lastUpdates", {"streams": [{"serviceObject": "{so}", "stream": "celsius"}]}),
    ("POST", "/tokens", {"name": "x", "serviceObject": "{so}"}),
    ("POST", "/templates/{template}/objects", {"parameters": [{}]}),
]
"""Bodies that name something."""


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(("method", "path", "wanted"), NAMING, ids=[each[1] for each in NAMING])
def test_a_body_that_names_what_is_anothers_names_nothing(
    method: str, path: str, wanted: Any, world: World, bob: Caller
) -> None:
    def asked(names: dict[str, str]) -> tuple[int, str]:
        text = json.dumps(wanted).replace("{so}", names["so"])
        sent = {"data": text, "content_type": "application/json"}
        answer = bob.ask(method, path.replace("{template}", names["template"]), **sent)
        return answer.status_code, answer.get_data(as_text=True).replace(names["so"], "")

    nothing = {name: "0" * len(each) for name, each in world.names.items()}
    theirs, nobodys = asked(world.names), asked(nothing)

    assert (theirs[0], json.loads(theirs[1] or "0")) == (
        nobodys[0],
        json.loads(nobodys[1] or "0"),
    )


@pytest.mark.usefixtures("unchanged")
def test_a_group_reads_nothing_of_anothers(world: World, bob: Caller) -> None:
    document = json.dumps(GROUP).replace("{so}", world.names["so"])

    assert told(bob.ask("POST", "/", data=document)) == (401, "Not authorized")


@pytest.mark.usefixtures("unchanged")
def test_updates_of_others_streams_are_not_taken_in_a_batch(world: World, bob: Caller) -> None:
    def asked(so: str) -> Any:
        update = {"channels": {"celsius": {"current-value": 1}}, "lastUpdate": NOW_MS}
        line = json.dumps({"serviceObject": so, "stream": "celsius", "update": update})
        answer = bob.ask("POST", "/updates", data=line, content_type="application/x-ndjson")
        return answer.status_code, answer.get_data(as_text=True).replace(so, "")

    assert asked(world.names["so"]) == asked("0" * len(world.names["so"]))
