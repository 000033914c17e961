"""What is measured of a stream, at the console: ordered, seen by the minute, ended."""

from __future__ import annotations

import re

import pytest
from api_builders import Caller, Platform, Served
from console_visits import client, csrf, tenant
from flask.testing import FlaskClient

from api.app import create_app
from sandbox.text import argument_names
from servioticy.domain.model import StreamRef
from servioticy.ports.accounts import Use
from servioticy.settings import Settings

__all__ = ["client", "tenant"]


@pytest.fixture
def served(backend: Platform) -> Served:
    """With Postgres's own clock: it says which minute it is."""
    database = backend.database

    def now() -> float:
        ((milliseconds,),) = database.rows("SELECT extract(epoch FROM now()) * 1000")
        return float(milliseconds) / 1000

    return Served(create_app(backend.ports, Settings(), now, argument_names), backend)


def measured(client: FlaskClient, so: str) -> str:
    form = {"csrf": csrf(client), "object": so, "stream": "a", "purpose": "<i>heating"}
    answer = client.post("/console/aspects", data=form)
    found = re.search("/console/aspects/([^?]+)[?]done=made", answer.headers["Location"])
    assert found is not None
    return found[1]


def test_a_stream_is_measured_seen_and_measured_no_more(
    client: FlaskClient, served: Served, tenant: Caller
) -> None:
    so = tenant.create()
    assert "Nothing is measured." in client.get("/console/aspects").text
    assert f'value="{so}"' in client.get(f"/console/aspects?object={so}&stream=a").text
    aspect = measured(client, so)
    path = f"/console/aspects/{aspect}"
    assert "Nothing was computed in this time." in client.get(f"{path}?done=made").text
    owner = served.platform.stream(so).tenant
    ended = {"emitted": 3, "script-error": 1}
    use = Use(owner, StreamRef(so, "a"), owner, computations=ended, microseconds=4000)
    served.platform.store.account([use])

    page = client.get(f"{path}?span=day").text
    assert "&lt;i&gt;heating" in page
    assert "emitted 3, script-error 1" in page
    assert "1 ms on average" in page
    assert '<rect class="bad"' in page
    assert f"/console/aspects/{aspect}" in client.get("/console/aspects").text
    assert client.post(f"{path}/end", data={"csrf": csrf(client)}).status_code == 303
    assert client.get(path).status_code == 404


def test_what_cannot_be_measured_is_told(client: FlaskClient, served: Served) -> None:
    other = served.tenant("b").create()
    for so, stream in (("none", "a"), (other, "a"), ("", "")):
        form = {"csrf": csrf(client), "object": so, "stream": stream}
        answer = client.post("/console/aspects", data=form)
        assert (answer.status_code, "did not work" in answer.text) == (404, True)
    assert client.post("/console/aspects", data={"object": other}).status_code == 403
