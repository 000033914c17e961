"""Somebody who has signed in at the console, without a browser; a test has its own `served`."""

from __future__ import annotations

import re

import pytest
from api_builders import Caller, Served
from flask.testing import FlaskClient


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
