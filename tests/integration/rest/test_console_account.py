"""Deliveries, usage, grants, members, tokens and the audit log over the real API."""

from __future__ import annotations

import re

import pytest
from api_builders import SIMPLE, Caller, Platform, Served
from console_visits import client, csrf, signed_in, tenant
from flask.testing import FlaskClient
from token_issuer import OIDC

from api.app import create_app
from sandbox.text import argument_names
from servioticy.settings import Settings, changed

__all__ = ["client", "tenant"]

NOW = 1_700_000_000.0
PAGES = ["deliveries", "jobs", "usage", "grants", "members", "tokens", "audit"]


@pytest.fixture
def served(backend: Platform) -> Served:
    settings = changed(Settings(), **OIDC)
    return Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)


def subscribed(tenant: Caller) -> str:
    so = tenant.create({**SIMPLE, "name": "<b>Hall"})
    body = {"callback": "http", "destination": "http://example.org/in"}
    answer = tenant.ask("POST", f"/{so}/streams/a/subscriptions", json=body)
    id_: str = answer.get_json()["id"]
    return id_


@pytest.mark.parametrize("page", PAGES)
def test_a_tenant_with_nothing_sees_each_page(client: FlaskClient, page: str) -> None:
    answer = client.get(f"/console/{page}")
    assert answer.status_code == 200, answer.text
    assert 'aria-current="page"' in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "jobs",
        "jobs/x/cancel",
        "grants",
        "members",
        "tokens",
        "members/x/remove",
        "tokens/x/revoke",
        "grants/x/revoke",
    ],
)
def test_no_change_without_what_our_pages_carry(client: FlaskClient, path: str) -> None:
    assert client.post(f"/console/{path}", data={"name": "x"}).status_code == 403


def test_a_subscription_is_listed_tested_and_ended(client: FlaskClient, tenant: Caller) -> None:
    id_ = subscribed(tenant)
    page = client.get("/console/deliveries").text
    assert "&lt;b&gt;Hall \u203a a" in page
    assert "http://example.org/in" in page

    path = f"/console/deliveries/{id_}"
    carried = {"csrf": csrf(client, path)}
    assert client.post(f"{path}/test").status_code == 403
    answer = client.post(f"{path}/test", data=carried)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{path}?done=test")
    assert 'data-state="asked"' in client.get(path).text
    assert client.post(f"{path}/redrive", data=carried).status_code == 303
    assert client.post(f"{path}/end", data=carried).status_code == 303
    assert client.get(path).status_code == 404


def test_a_subscription_of_others_is_not_there(
    client: FlaskClient, served: Served, tenant: Caller
) -> None:
    id_ = subscribed(served.tenant("b"))
    tenant.create()
    assert client.get(f"/console/deliveries/{id_}").status_code in (401, 404)
    carried = {"csrf": csrf(client)}
    assert client.post(f"/console/deliveries/{id_}/end", data=carried).status_code in (401, 404)
    assert id_ not in client.get("/console/deliveries").text


def test_a_grant_is_given_and_revoked(client: FlaskClient, tenant: Caller) -> None:
    so = tenant.create({**SIMPLE, "name": "Hall"})
    form = {"object": so, "stream": "a", "to": "", "use": "derive", "days": "2"}
    carried = {"csrf": csrf(client)}

    assert client.post("/console/grants", data=form | carried).status_code == 303
    page = client.get("/console/grants").text
    assert "to everyone" in page
    (given,) = tenant.ask("GET", "/grants").get_json()["grants"]
    assert (given["use"], given["expiresAt"]) == ("derive", int(NOW * 1000) + 2 * 86_400_000)

    path = f"/console/grants/{given['id']}/revoke"
    assert client.post(path, data=carried).status_code == 303
    assert tenant.ask("GET", "/grants").get_json()["grants"] == []
    answer = client.post("/console/grants", data=form | carried | {"days": "soon"})
    assert (answer.status_code, "expiresIn" in answer.text) == (400, True)


def test_a_member_is_added_changed_and_removed(client: FlaskClient, tenant: Caller) -> None:
    carried = {"csrf": csrf(client)}
    form = {"subject": "24400320", "name": "Alice", "role": "viewer"}
    assert client.post("/console/members", data=form | carried).status_code == 303
    (member,) = tenant.ask("GET", "/members").get_json()["members"]
    path = f"/console/members/{member['id']}"
    answer = client.post(f"{path}/role", data=carried | {"role": "admin"})
    assert answer.status_code == 303
    (member,) = tenant.ask("GET", "/members").get_json()["members"]
    assert member["role"] == "admin"
    assert client.post(f"{path}/remove", data=carried).status_code == 303
    assert tenant.ask("GET", "/members").get_json()["members"] == []


def test_a_token_is_shown_once_exchanged_and_revoked(
    client: FlaskClient, served: Served, tenant: Caller
) -> None:
    carried = {"csrf": csrf(client)}
    form = {"name": "display", "right": ["read", "list"], "days": "1"}
    page = client.post("/console/tokens", data=form | carried).text
    token = re.search('<pre id="token"[^>]*>([0-9A-Za-z]{22})<', page)
    assert token is not None
    assert token[1] not in client.get("/console/tokens").text
    assert Caller(tenant.client, token[1]).ask("GET", "/").status_code == 200

    (made,) = (
        each
        for each in tenant.ask("GET", "/tokens").get_json()["tokens"]
        if each["name"] == "display"
    )
    assert (made["rights"], made["expiresAt"]) == (
        ["list", "read"],
        made["createdAt"] + 86_400_000,
    )
    path = f"/console/tokens/{made['id']}"
    assert "shown only now" in client.post(f"{path}/rotate", data=carried).text
    assert client.post(f"{path}/revoke", data=carried).status_code == 303
    assert Caller(tenant.client, token[1]).ask("GET", "/").status_code == 403
    assert "made" in client.get("/console/audit?kind=token").text


def test_what_a_token_may_not_see_its_console_does_not_show(
    served: Served, tenant: Caller
) -> None:
    made = tenant.ask("POST", "/tokens", json={"name": "reader", "rights": ["list", "read"]})
    reader = signed_in(served, made.get_json()["token"])
    for page in ("members", "tokens", "audit"):
        answer = reader.get(f"/console/{page}")
        assert (answer.status_code, "did not work" in answer.text) == (403, True)
    assert reader.get("/console/grants").status_code == 200


@pytest.mark.parametrize("by", ["hour", "day", "serviceObject", "stream", "provider", "nonsense"])
def test_usage_is_told_by_what_is_asked_for(client: FlaskClient, tenant: Caller, by: str) -> None:
    tenant.create()
    page = client.get(f"/console/usage?by={by}&span=week").text
    assert "the last week" in page
    assert "stored-bytes" in page
