"""Operators at the console over the real API: seen, granted, and changed for others."""

from __future__ import annotations

from pathlib import Path

import pytest
from api_builders import NOW, SIMPLE, Caller, Platform, Served
from console_visits import client, csrf, signed_in, tenant
from flask.testing import FlaskClient
from operator_folders import write

from api.app import create_app
from api.console import operators as pages
from operators import archives
from operators.line import Running
from operators.registry import Registry
from sandbox.text import argument_names
from servioticy.ports.programs import Program
from servioticy.settings import Settings, changed
from servioticy.storage.programs import PostgresPrograms

__all__ = ["client", "tenant"]


@pytest.fixture
def served(backend: Platform) -> Served:
    settings = changed(Settings(), operators_protection="any")
    return Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)


@pytest.fixture
def pushed(tenant: Caller, tmp_path: Path) -> Caller:
    """Three versions of the program `tried`."""
    for main in ("1", "2", "3"):
        content = archives.pack(write(tmp_path / main, main))
        assert tenant.ask("PUT", "/operators/tried", data=content).status_code == 201
    return tenant


def computed(tenant: Caller, version: int, name: str = "Hall") -> str:
    by = {"name": "tried", "version": version, "inputs": ["a"]}
    streams = {**SIMPLE["streams"], "b": {"operator": by, "channels": {"v": {"type": "number"}}}}
    return tenant.create({"version": "0.2.0", "name": name, "streams": streams})


def version_of(tenant: Caller, so: str) -> int:
    found = tenant.ask("GET", f"/{so}").get_json()["streams"]["b"]["operator"]["version"]
    assert isinstance(found, int)
    return found


def test_who_has_none_is_told_how_one_is_pushed(client: FlaskClient) -> None:
    page = client.get("/console/operators").text
    assert "There is no operator yet." in page
    assert "SERVIOTICY_URL=http://127.0.0.1:8080" in page
    assert client.get("/console/operators/none").status_code == 404
    assert client.get("/console/operators/none/1").status_code == 404


def test_versions_and_how_each_runs_are_seen(
    client: FlaskClient, served: Served, pushed: Caller
) -> None:
    address = served.platform.ports.addresses.address(pushed.token, None, None)
    assert address is not None
    program = Program(address.caller, "tried", 3)
    run = Running(program, "serving", 2, "ended by <itself>", b"hello\n<b>", 5)
    Registry(PostgresPrograms(served.platform.database)).tell("node-1", [run])

    listed = client.get("/console/operators").text
    assert "/console/operators/tried" in listed
    assert "1 serving" in listed
    page = client.get("/console/operators/tried/3").text
    assert "ended by &lt;itself&gt;" in page
    assert "hello\n&lt;b&gt;" in page
    assert "256MiB at most" in page
    assert "It has run nowhere" in client.get("/console/operators/tried/1").text


def test_a_stream_is_computed_by_another_version_and_back(
    client: FlaskClient, pushed: Caller
) -> None:
    so = computed(pushed, 3, "<i>Hall")
    page = client.get("/console/operators/tried").text
    assert "&lt;i&gt;Hall \u203a b" in page
    form = {"csrf": csrf(client), "object": so, "stream": "b"}
    for version in (1, 3):
        answer = client.post("/console/operators/tried/use", data=form | {"version": str(version)})
        assert answer.status_code == 303, answer.text
        assert version_of(pushed, so) == version
    for stream, version, status in (("a", "1", 400), ("b", "9", 400), ("b", "new", 400)):
        sent = form | {"stream": stream, "version": version}
        answer = client.post("/console/operators/tried/use", data=sent)
        assert answer.status_code == status, answer.text
    assert version_of(pushed, so) == 3


def test_its_stream_is_derived_everywhere(client: FlaskClient, pushed: Caller) -> None:
    """Nobody is asked to send a test update to it, and its page says by what it is computed."""
    so = computed(pushed, 2)
    assert "Send<span" not in client.get(f"/console/devices/{so}").text
    page = client.get(f"/console/streams/{so}/b").text
    assert '<a href="/console/operators/tried/2">version 2</a>' in page
    assert 'class="badge">derived' in page


def test_a_stream_beside_it_says_whose_program_makes_it(
    client: FlaskClient, pushed: Caller
) -> None:
    value = {"channels": {"v": {"type": "number"}}}
    streams = {
        "a": value,
        "b": {"operator": {"name": "tried", "version": 1, "inputs": ["a"]}, **value},
        "beside": {"operator": {"of": "b"}, **value},
    }
    so = pushed.create({"version": "0.2.0", "name": "Hall", "streams": streams})
    page = client.get(f"/console/streams/{so}/beside")
    assert page.status_code == 200
    assert "By the program of <a" in page.text
    assert client.get("/console/operators/tried").text.count("Compute by it") == 1


def test_a_grant_is_given_and_revoked(client: FlaskClient, served: Served, pushed: Caller) -> None:
    other = served.tenant("b").ask("GET", "/grants").get_json()["tenant"]
    carried = {"csrf": csrf(client)}
    path = "/console/operators/tried/grants"
    assert client.post(path, data=carried | {"tenant": f" {other} "}).status_code == 303
    assert "Revoke" in client.get("/console/operators/tried").text
    assert "Others that compute by them" in client.get("/console/operators").text
    assert client.post(f"{path}/{other}/revoke", data=carried).status_code == 303
    assert pushed.ask("GET", "/operators").get_json()["grants"] == []
    answer = client.post(path, data=carried | {"tenant": "nobody"})
    assert (answer.status_code, "no tenant of this id" in answer.text) == (404, True)


def test_a_version_is_removed(client: FlaskClient, pushed: Caller) -> None:
    so = computed(pushed, 3)
    carried = {"csrf": csrf(client)}
    answer = client.post("/console/operators/tried/3/remove", data=carried)
    assert answer.headers["Location"] == "/console/operators/tried?done=removed"
    page = client.get("/console/operators/tried").text
    assert '<span class="badge bad">removed</span>' in page
    assert client.get("/console/operators/tried/3").status_code == 404
    for version in (1, 2):
        answer = client.post(f"/console/operators/tried/{version}/remove", data=carried)
    assert answer.headers["Location"] == "/console/operators?done=removed"
    assert client.post("/console/operators/tried/1/remove", data=carried).status_code == 404
    assert version_of(pushed, so) == 3


def test_who_computes_by_it_is_looked_for_some_at_a_time(
    client: FlaskClient, pushed: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "LOOKED_AT", 2)
    monkeypatch.setattr(pages, "SECONDS", -1.0)
    for number in range(3):
        computed(pushed, 1, f"Hall {number}")
    page = client.get("/console/operators/tried").text
    assert page.count("Compute by it") == 2
    assert "Look further" in page


@pytest.mark.parametrize(
    "path",
    ["tried/1/remove", "tried/use", "tried/grants", "tried/grants/x/revoke"],
)
def test_no_change_without_what_our_pages_carry(
    client: FlaskClient, pushed: Caller, path: str
) -> None:
    assert client.post(f"/console/operators/{path}", data={"object": "x"}).status_code == 403


def test_who_may_not_inspect_is_told(served: Served, pushed: Caller) -> None:
    wanted = {"name": "lister", "rights": ["list", "read"]}
    token = pushed.ask("POST", "/tokens", json=wanted).get_json()["token"]
    other = signed_in(served, token)
    assert "tried" in other.get("/console/operators").text
    assert other.get("/console/operators/tried/1").status_code == 403


def test_programs_are_pushed_through_the_console_by_what_the_api_takes(
    client: FlaskClient, tenant: Caller, tmp_path: Path
) -> None:
    """As a page does it: with the cookie, and with what our pages carry."""
    content = archives.pack(write(tmp_path / "1", "1"))
    carried = {"X-CSRF-Token": csrf(client)}
    path = "/console/api/operators/tried"
    assert client.put(path, data=content).status_code == 403
    assert client.put(path, data=content, headers=carried).status_code == 201
    assert client.put(path, data=content, headers=carried).status_code == 200
    bad = write(tmp_path / "2", "2", limits={"memory": "1MiB"})
    answer = client.put(path, data=archives.pack(bad), headers=carried)
    assert (answer.status_code, "(line 1, column " in answer.text) == (400, True)
    page = client.get("/console/operators/tried?done=pushed").text
    assert "It computes nothing until a document names it." in page
