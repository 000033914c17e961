"""The sessions of the console are as their contract says: its routes, and how each answers."""

from __future__ import annotations

import re

import pytest
from api_builders import Served
from console_visits import checked, csrf, signed_in
from flask.testing import FlaskClient

from api.console.mount import Mount
from schemas import contracts

CONTRACT = contracts.console()
OPERATIONS = contracts.operations(CONTRACT)
OF_ISSUERS = {"/console/sign-in/issuer", "/console/sign-in/callback"}
"""Which are there where there is an issuer: test_console_by_issuer.py has what they answer."""


@pytest.fixture
def client(served: Served) -> FlaskClient:
    return signed_in(served, served.tenant("a").token)


def test_it_has_every_route_of_a_session(served: Served) -> None:
    mount = served.app.wsgi_app
    assert isinstance(mount, Mount)
    routes = {
        (method, rule.rule)
        for rule in mount.rules()
        if re.match("/console/(session|sign-)", rule.rule)
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }

    assert routes == {
        (method, path)
        for method, path in OPERATIONS
        if not path.startswith("/console/api") and path not in OF_ISSUERS
    }


def test_the_contract_is_served(client: FlaskClient) -> None:
    assert client.get("/openapi-console.json").get_json() == CONTRACT


def test_each_answer_is_one_that_it_tells(served: Served, client: FlaskClient) -> None:
    token = served.tenant("b").token
    nobody = served.app.test_client()
    carried = {"X-CSRF-Token": csrf(client)}
    asked = [
        (nobody, "GET", "/console/session", {}, 401),
        (nobody, "GET", "/console/sign-in", {}, 200),
        (nobody, "POST", "/console/sign-in", {"data": {"token": "wrong"}}, 403),
        (nobody, "GET", "/console/api/{path}", {}, 401),
        (nobody, "POST", "/console/sign-in", {"data": {"token": token}}, 303),
        (nobody, "GET", "/console/session", {}, 204),
        (nobody, "GET", "/console/sign-in", {}, 303),
        (client, "GET", "/console/api/{path}", {}, 200),
        (client, "POST", "/console/api/{path}", {}, 403),
        (client, "POST", "/console/sign-out", {"data": {}}, 403),
        (client, "POST", "/console/sign-out", {"data": {"csrf": carried["X-CSRF-Token"]}}, 303),
        (client, "GET", "/console/session", {}, 401),
    ]
    for who, method, path, more, status in asked:
        answer = who.open(path.format(path="service-objects"), method=method, **more)
        checked(answer, method, path, status)
