"""Signing in to the console: what the cookie gives, to whom, and until when."""

from __future__ import annotations

import re
from http.cookies import SimpleCookie

import pytest
from api_builders import NOW, SIMPLE, Caller, Platform, Served
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.app import create_app
from api.http.attempts import MOST as ATTEMPTS
from sandbox.text import argument_names
from servioticy.domain.tokens import digest
from servioticy.identity import console_sessions
from servioticy.settings import Settings, changed

COOKIE = "servioticy-session"
ORIGIN = "http://127.0.0.1:8080"


def sign_in(client: FlaskClient, token: str, **headers: str) -> TestResponse:
    return client.post("/console/sign-in", data={"token": token}, headers=headers)


def csrf(client: FlaskClient) -> str:
    found = re.search('name="csrf" content="([0-9a-f]+)"', client.get("/console/devices").text)
    assert found is not None
    return found[1]


@pytest.fixture
def tenant(served: Served) -> Caller:
    return served.tenant("a")


@pytest.fixture
def client(served: Served, tenant: Caller) -> FlaskClient:
    """A browser that has signed in."""
    found = served.app.test_client()
    assert sign_in(found, tenant.token).status_code == 303
    return found


def test_a_token_becomes_a_cookie_that_no_script_reads(served: Served, tenant: Caller) -> None:
    answer = sign_in(served.app.test_client(), tenant.token)

    cookie = SimpleCookie(answer.headers["Set-Cookie"])[COOKIE]
    assert (answer.status_code, answer.headers["Location"]) == (303, "/console/")
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
    assert not cookie["secure"]  # nothing leaves the machine
    assert tenant.token not in str(answer.headers)


def test_behind_tls_the_cookie_is_bound_to_the_host(backend: Platform) -> None:
    settings = changed(Settings(), public_url="https://iot.example/")
    served = Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)
    answer = sign_in(served.app.test_client(), served.tenant("a").token)

    cookie = SimpleCookie(answer.headers["Set-Cookie"])["__Host-servioticy"]
    assert (cookie["secure"], cookie["path"], cookie["domain"]) == (True, "/", "")


@pytest.mark.parametrize(
    "more", [{"public_url": "http://iot.example"}, {"host": "0.0.0.0"}], ids=str
)
def test_where_the_token_would_be_seen_nobody_signs_in(
    backend: Platform, more: dict[str, str]
) -> None:
    settings = changed(Settings(), **more)
    served = Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)

    answer = sign_in(served.app.test_client(), served.tenant("a").token)
    assert (answer.status_code, "Set-Cookie" in answer.headers) == (403, False)
    assert "public_url" in answer.text


def test_the_store_has_no_token_that_could_be_used(
    served: Served, client: FlaskClient, tenant: Caller
) -> None:
    ((stored, known_by),) = served.platform.database.rows(
        "SELECT token, known_by FROM console_sessions"
    )

    assert tenant.token.encode() not in bytes(stored)
    assert bytes(known_by) == digest(tenant.token)
    cookie = client.get_cookie(COOKIE)
    assert cookie is not None
    assert digest(cookie.value) not in bytes(stored)


def test_the_api_takes_no_cookie(client: FlaskClient) -> None:
    assert client.get("/service-objects").status_code == 403
    assert client.get("/console/api/service-objects").status_code == 200


def test_what_the_api_answers_to_a_page_is_for_no_other_page(client: FlaskClient) -> None:
    answer = client.get("/console/api/service-objects")

    assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_a_page_runs_and_loads_nothing_but_ours(client: FlaskClient) -> None:
    answer = client.get("/console/devices")
    policy = answer.headers["Content-Security-Policy"]

    assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
    assert "ws://127.0.0.1:8081" in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon[a-z]+=", answer.text)
    assert not re.search(r'(?:src|href|action)="(?:[a-z]+:)?//', answer.text)
    assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]


@pytest.mark.parametrize("carried", ["", "0" * 64])
def test_a_change_has_to_carry_what_only_our_pages_know(client: FlaskClient, carried: str) -> None:
    refused = client.post("/console/api/", json=SIMPLE, headers={"X-CSRF-Token": carried})
    assert refused.status_code == 403

    made = client.post("/console/api/", json=SIMPLE, headers={"X-CSRF-Token": csrf(client)})
    assert made.status_code == 201


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/console/api/service-objects", "/console/api/"])
def test_what_another_page_sends_is_refused(client: FlaskClient, site: str, path: str) -> None:
    """`same-site` is another port of the host: its pages send the cookie, too."""
    headers = {"Sec-Fetch-Site": site, "X-CSRF-Token": csrf(client)}
    method = "POST" if path.endswith("/") else "GET"
    assert client.open(path, method=method, headers=headers, json=SIMPLE).status_code == 403


def test_nobody_is_signed_in_by_another_page(served: Served, tenant: Caller) -> None:
    """Else a page could make somebody work in its own tenant."""
    client = served.app.test_client()

    assert sign_in(client, tenant.token, Origin="http://127.0.0.1:3000").status_code == 403
    assert sign_in(client, tenant.token, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert sign_in(client, tenant.token, Origin=ORIGIN).status_code == 303


def test_without_a_session_pages_ask_to_sign_in(served: Served) -> None:
    client = served.app.test_client()

    answer = client.get("/console/devices")
    assert (answer.status_code, answer.headers["Location"]) == (
        303,
        "/console/sign-in?next=/console/devices",
    )
    assert client.get("/console/api/service-objects").status_code == 401


@pytest.mark.parametrize(
    "wanted", ["https://other.example/", "//other.example/", "/console/..//other", "/service", ""]
)
def test_signing_in_leads_to_our_pages_alone(served: Served, tenant: Caller, wanted: str) -> None:
    form = {"token": tenant.token, "next": wanted}
    answer = served.app.test_client().post("/console/sign-in", data=form)
    assert answer.headers["Location"] == "/console/"


def test_signing_out_ends_the_session_on_the_server(client: FlaskClient) -> None:
    cookie = client.get_cookie(COOKIE)
    assert cookie is not None

    assert client.post("/console/sign-out", data={"csrf": csrf(client)}).status_code == 303
    client.set_cookie(COOKIE, cookie.value)
    assert client.get("/console/api/service-objects").status_code == 401


def test_a_session_ends_with_its_time(served: Served, client: FlaskClient) -> None:
    served.platform.database.rows("UPDATE console_sessions SET expires_at = now()")
    assert client.get("/console/devices").status_code == 303


def test_a_session_ends_with_its_token(served: Served, tenant: Caller) -> None:
    made = tenant.ask("POST", "/tokens", json={"name": "mine"}).get_json()
    client = served.app.test_client()
    sign_in(client, made["token"])
    assert client.get("/console/devices").status_code == 200

    assert tenant.ask("DELETE", f"/tokens/{made['id']}").status_code == 204
    answer = client.get("/console/devices")
    assert answer.status_code == 403
    assert "not good any more" in answer.text
    assert client.get("/console/devices").status_code == 303
    assert served.platform.database.rows("SELECT 1 FROM console_sessions") == []


def test_what_a_token_is_not_for_the_console_does_not_do(served: Served, tenant: Caller) -> None:
    wanted = {"name": "reader", "rights": ["read", "list"]}
    made = tenant.ask("POST", "/tokens", json=wanted).get_json()
    client = served.app.test_client()
    sign_in(client, made["token"])

    headers = {"X-CSRF-Token": csrf(client)}
    assert client.post("/console/api/", json=SIMPLE, headers=headers).status_code == 403


def test_the_token_of_a_device_is_none_for_people(served: Served, tenant: Caller) -> None:
    device = tenant.ask("POST", "/", json=SIMPLE).get_json()["api_token"]

    answer = sign_in(served.app.test_client(), device)
    assert (answer.status_code, "one device" in answer.text) == (403, True)


def test_whoever_guesses_waits(served: Served, tenant: Caller) -> None:
    client = served.app.test_client()
    statuses = [sign_in(client, f"wrong{n}").status_code for n in range(int(ATTEMPTS) + 1)]
    assert (statuses[0], statuses[-1]) == (403, 429)

    assert sign_in(client, tenant.token).status_code == 429


def test_a_tenant_has_so_many_sessions(
    served: Served, tenant: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_sessions, "MOST", 2)
    clients = [served.app.test_client() for _ in range(3)]
    for each in clients:
        sign_in(each, tenant.token)

    statuses = [each.get("/console/api/service-objects").status_code for each in clients]
    assert statuses == [401, 200, 200]


def test_nobody_sees_another_tenants_devices(served: Served, client: FlaskClient) -> None:
    other = served.tenant("b")
    id_ = other.create({**SIMPLE, "name": "secret thing"})

    assert "secret thing" not in client.get("/console/devices").text
    assert client.get(f"/console/api/{id_}").status_code == 401


def test_what_devices_are_called_is_text(
    served: Served, client: FlaskClient, tenant: Caller
) -> None:
    tenant.create({**SIMPLE, "name": "<script>alert(1)</script>"})
    assert "<script>alert" not in client.get("/console/devices").text
