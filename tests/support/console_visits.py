"""Somebody who has signed in at the console, without a browser; a test has its own `served`."""

from __future__ import annotations

import re

import pytest
from api_builders import Caller, Served
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from werkzeug.test import TestResponse

from schemas import contracts


@pytest.fixture
def tenant(served: Served) -> Caller:
    return served.tenant("a")


@pytest.fixture
def client(served: Served, tenant: Caller) -> FlaskClient:
    return signed_in(served, tenant.token)


def signed_in(served: Served, token: str) -> FlaskClient:
    """A client with a session for this token."""
    found = served.app.test_client()
    assert found.post("/console/sign-in", data={"token": token}).status_code == 303
    return found


def csrf(client: FlaskClient, path: str = "/console/devices") -> str:
    """What changes have to carry."""
    found = re.search('name="csrf" content="([0-9a-f]+)"', client.get(path).text)
    assert found is not None
    return found[1]


def checked(answer: TestResponse, method: str, path: str, status: int) -> None:
    """See that an answer is this one, and is told by the contract of the console's sessions."""
    contract = contracts.console()
    told = contracts.operations(contract)[method, path]["responses"]
    assert answer.status_code == status, (method, path, answer.text)
    assert str(status) in told, (method, path)
    response = told[str(status)]
    if "$ref" in response:
        response = contract["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    lacking = {each for each in response.get("headers", {}) if each not in answer.headers}
    assert lacking == set(), (method, path)
    for schema in [each["schema"] for each in response.get("content", {}).values()]:
        if answer.is_json:
            whole = {"components": contract["components"], "allOf": [schema]}
            Draft202012Validator(whole).validate(answer.get_json())
