"""Signing in to the console at an OpenID Connect provider of others, there and back again."""

from __future__ import annotations

import base64
import html
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import orjson
import pytest
import waiting
from api_builders import NOW, Caller, Platform, Served
from browsing import Person, browser, person
from console_visits import checked, csrf
from flask.testing import FlaskClient
from playwright.sync_api import Browser
from real_issuer import AUDIENCE, RealIssuer, real_issuer
from werkzeug.serving import make_server
from werkzeug.test import TestResponse

from api.app import create_app
from api.console import by_issuer
from api.console.mount import Mount
from api.http.attempts import MOST as ATTEMPTS
from sandbox.text import argument_names
from servioticy.embedded import tcp_ports as ports
from servioticy.errors import Unavailable
from servioticy.identity import renewing, sign_ins
from servioticy.identity.addresses import AddressesOfPersons
from servioticy.identity.issuers import with_persons
from servioticy.identity.sign_ins import SignIns
from servioticy.settings import Settings, changed
from servioticy.storage.addresses import PostgresAddresses

__all__ = ["browser"]

COOKIE, PENDING = "servioticy-session", "servioticy-session-sign-in"
CALLBACK = "/console/sign-in/callback"


@pytest.fixture(scope="module")
def issuer() -> Iterator[RealIssuer]:
    with real_issuer() as found:
        yield found


@pytest.fixture
def settings(issuer: RealIssuer) -> Settings:
    return changed(
        Settings(),
        api_port=ports.free(),
        oidc_issuers=issuer.url,
        oidc_audience=AUDIENCE,
        oidc_client="dashboard",
        oidc_scope="openid use",
        oidc_parameters=f"resource={AUDIENCE}",
    )


@pytest.fixture
def backend(database: Any, settings: Settings) -> Iterator[Platform]:
    platform = Platform(database)
    addresses = with_persons(PostgresAddresses(database.api), settings.identity)
    assert isinstance(addresses, AddressesOfPersons)
    platform.ports = replace(platform.ports, addresses=addresses)
    yield platform
    for each in addresses.issuers:
        each.stop()


@pytest.fixture
def served(backend: Platform, settings: Settings) -> Served:
    served = Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)
    login = getattr(backend.ports.addresses, "login", None)
    assert login is not None
    waiting.until(lambda: login.leaving != "")  # it has told of itself, and its keys
    return served


@pytest.fixture
def tenant(served: Served) -> Caller:
    found = served.tenant("ours")
    wanted = {"subject": "alice", "role": "admin"}
    assert found.ask("POST", "/members", json=wanted).status_code == 201
    return found


@pytest.fixture
def client(served: Served) -> FlaskClient:
    return served.app.test_client()


def begun(client: FlaskClient, tenant: str = "ours", wanted: str = "/console/usage") -> httpx.URL:
    """Where the browser is sent."""
    form = {"tenant": tenant, "next": wanted}
    answer = client.post("/console/sign-in/issuer", data=form)
    assert answer.status_code == 200, answer.text
    found = re.search('http-equiv="refresh" content="0; url=([^"]+)"', answer.text)
    assert found is not None
    return httpx.URL(html.unescape(found[1]))


def finished(client: FlaskClient, back: httpx.URL) -> TestResponse:
    return client.get(f"{CALLBACK}?{back.query.decode()}")


def signed_in(client: FlaskClient, issuer: RealIssuer, subject: str = "alice") -> TestResponse:
    return finished(client, issuer.back(begun(client), subject))


def due(served: Served, *, ended: bool = False) -> None:
    """Let the token of the session be one to be renewed; or one that has ended."""
    column = "renew_at = now(), token_ends_at = now()" if ended else "renew_at = now()"
    served.platform.database.rows(f"UPDATE console_sessions SET {column}")


def stored(served: Served) -> tuple[bytes, bytes | None]:
    ((token, renewal),) = served.platform.database.rows(
        "SELECT token, renewal FROM console_sessions"
    )
    return bytes(token), None if renewal is None else bytes(renewal)


def test_a_person_signs_in_acts_for_its_tenant_and_signs_out(
    served: Served, client: FlaskClient, tenant: Caller, issuer: RealIssuer
) -> None:
    page = client.get("/console/sign-in?next=/console/usage").text
    assert f"Sign in at 127.0.0.1:{issuer.port}" in page
    answer = signed_in(client, issuer)

    assert answer.status_code == 200, answer.text
    assert 'content="0; url=/console/usage"' in answer.text
    cookies = {each.partition("=")[0]: each for each in answer.headers.getlist("Set-Cookie")}
    assert cookies.keys() == {COOKIE, PENDING}
    assert "HttpOnly" in cookies[COOKIE] and "SameSite=Strict" in cookies[COOKIE]
    assert "Max-Age=0" in cookies[PENDING]
    assert client.get("/console/session").status_code == 204
    so = tenant.create()
    assert so in client.get("/console/devices").text

    left = client.post("/console/sign-out", data={"csrf": csrf(client)})
    page = client.get(left.headers["Location"]).text
    assert f'href="{issuer.url}/session/end?client_id=dashboard"' in page
    assert client.get("/console/session").status_code == 401


def test_both_ways_are_as_their_contract_says(
    served: Served,
    client: FlaskClient,
    tenant: Caller,
    issuer: RealIssuer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each answer that schemas/console.json tells, and no route beside them."""
    mount = served.app.wsgi_app
    assert isinstance(mount, Mount)
    begin, callback = ("POST", "/console/sign-in/issuer"), ("GET", CALLBACK)
    rules = {
        (method, rule.rule)
        for rule in mount.rules()
        if rule.rule.startswith("/console/sign-in/")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert rules == {begin, callback}

    from_another = {"Sec-Fetch-Site": "cross-site"}
    checked(client.post(begin[1], data={}, headers=from_another), *begin, 403)
    checked(client.post(begin[1], data={"tenant": "ours"}), *begin, 200)
    checked(client.get(CALLBACK, query_string={"code": "x", "state": "made up"}), *callback, 400)
    state = begun(client).params["state"]
    checked(client.get(CALLBACK, query_string={"code": "x", "state": state}), *callback, 403)
    checked(signed_in(client, issuer), *callback, 200)
    checked(client.get(CALLBACK), *callback, 303)

    def away(*_: Any) -> Any:
        raise Unavailable("the issuer")

    other = served.app.test_client()
    back = issuer.back(begun(other), "alice")
    login = getattr(served.platform.ports.addresses, "login", None)
    monkeypatch.setattr(login, "granted", away)
    checked(finished(other, back), *callback, 503)
    monkeypatch.setattr(login, "begin", away)
    checked(other.post(begin[1], data={}), *begin, 503)


def test_what_has_begun_is_kept_by_the_browser_alone(
    served: Served, client: FlaskClient, tenant: Caller
) -> None:
    """And goes along on the way back, which begins at the issuer: so it is no strict cookie."""
    answer = client.post("/console/sign-in/issuer", data={"tenant": "x" * 9_999})
    (cookie,) = answer.headers.getlist("Set-Cookie")
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Max-Age=600" in cookie
    assert len(cookie) < 1_500
    assert served.platform.database.rows("SELECT 1 FROM console_sessions") == []


def test_a_code_counts_only_in_the_browser_that_has_begun(
    served: Served, client: FlaskClient, tenant: Caller, issuer: RealIssuer
) -> None:
    """Else somebody could be signed in as another, by a link."""
    back = issuer.back(begun(client), "alice")
    other = served.app.test_client()
    assert finished(other, back).status_code == 400
    begun(other)
    answer = finished(other, back)
    assert (answer.status_code, "not begun in this browser" in answer.text) == (400, True)

    assert finished(client, back).status_code == 200
    client.delete_cookie(COOKIE)
    assert finished(client, back).status_code == 400


def kept(client: FlaskClient) -> str:
    """What the browser keeps of a sign-in that has begun."""
    found = client.get_cookie(PENDING)
    assert found is not None
    return found.value


def shown(client: FlaskClient, cookie: str, back: httpx.URL) -> tuple[int, bool]:
    """What becomes of a way back to a browser that keeps this; whether it says so."""
    client.set_cookie(PENDING, cookie)
    answer = finished(client, back)
    return answer.status_code, "what the browser kept of it was changed" in answer.text


def test_what_a_browser_keeps_of_a_sign_in_nobody_else_can_write(
    served: Served, client: FlaskClient, tenant: Caller, issuer: RealIssuer
) -> None:
    """Else a page on another port of our host could say for which tenant, and where it leads."""
    back = issuer.back(begun(client), "alice")
    cookie = kept(client)
    written, _, signature = cookie.rpartition(".")
    fields = orjson.loads(base64.urlsafe_b64decode(written))
    for place, value in (
        (1, "theirs"),
        (2, "/console/tokens"),
        (3, "http://x"),
        (4, fields[4] + 9),
    ):
        changed = [*fields[:place], value, *fields[place + 1 :]]
        made = base64.urlsafe_b64encode(orjson.dumps(changed)).decode()
        assert shown(client, f"{made}.{signature}", back) == (400, True)
    for forged in ("", ".", written, f"{written}.", f"{written}.{signature[:-1]}", f"{cookie}x"):
        assert shown(client, forged, back) == (400, True), forged
    assert served.platform.database.rows("SELECT 1 FROM console_sessions") == []

    assert shown(client, cookie, back) == (200, False)


def test_a_sign_in_lets_somebody_in_once(
    served: Served, client: FlaskClient, tenant: Caller, issuer: RealIssuer
) -> None:
    """Whoever has seen the cookie comes in neither by its code nor by another one."""
    there = begun(client)
    cookie, backs = kept(client), [issuer.back(there, "alice") for _ in range(2)]
    assert finished(client, backs[0]).status_code == 200
    other = served.app.test_client()
    for back in backs:
        other.set_cookie(PENDING, cookie)
        answer = finished(other, back)
        assert (answer.status_code, "has let somebody in already" in answer.text) == (400, True)
    assert len(served.platform.database.rows("SELECT 1 FROM console_sessions")) == 1


def test_every_process_of_the_api_knows_what_another_one_has_signed(
    served: Served, backend: Platform, client: FlaskClient, tenant: Caller, issuer: RealIssuer
) -> None:
    """By a key that is in the store, and made once."""
    statements = backend.ports.statements("console_sessions")
    first, second = SignIns(statements), SignIns(statements)
    assert second.opened(first.signed(b"this")) == b"this"
    assert len(backend.database.rows("SELECT 1 FROM console_keys")) == 1


def test_so_many_sign_ins_of_a_tenant_are_remembered(
    backend: Platform, tenant: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest; those that count no more go with the next."""
    monkeypatch.setattr(sign_ins, "MOST", 2)
    found = backend.ports.addresses.address(tenant.token, None, None)
    assert found is not None
    ours = SignIns(backend.ports.statements("console_sessions"))
    for number in range(4):
        assert ours.use(f"secret {number}", found.caller, 600)
        assert not ours.use(f"secret {number}", found.caller, 600)
    assert [ours.was_used(f"secret {number}") for number in range(4)] == [False, False, True, True]
    backend.database.rows("UPDATE console_sign_ins SET ends_at = now()")
    assert not ours.was_used("secret 3")
    assert ours.use("another", found.caller, 600)
    assert len(backend.database.rows("SELECT 1 FROM console_sign_ins")) == 1


def test_whoever_takes_too_long_begins_again(
    client: FlaskClient, tenant: Caller, issuer: RealIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = issuer.back(begun(client), "alice")
    monkeypatch.setattr(by_issuer, "SECONDS", -1)
    assert finished(client, back).status_code == 400


def test_what_the_issuer_says_is_wrong_is_told_as_text(
    client: FlaskClient, tenant: Caller
) -> None:
    state = begun(client).params["state"]
    query = {"error": "access_denied", "error_description": "<b>no", "state": state}
    answer = client.get(CALLBACK, query_string=query)
    assert (answer.status_code, "access_denied: &lt;b&gt;no" in answer.text) == (403, True)

    state = begun(client).params["state"]
    answer = client.get(CALLBACK, query_string={"iss": "https://x", "code": "1", "state": state})
    assert "of another issuer" in answer.text
    state = begun(client).params["state"]
    answer = client.get(CALLBACK, query_string={"code": "made-up", "state": state})
    assert (answer.status_code, "invalid_grant" in answer.text) == (403, True)


def test_who_is_no_member_is_told_by_which_name_it_can_be_made_one(
    served: Served, client: FlaskClient, tenant: Caller, issuer: RealIssuer
) -> None:
    answer = signed_in(client, issuer, "mallory")
    assert (answer.status_code, f"mallory of {issuer.url}" in answer.text) == (403, True)
    assert served.platform.database.rows("SELECT 1 FROM console_sessions") == []


def test_who_makes_up_codes_keeps_nobody_out(
    client: FlaskClient, tenant: Caller, issuer: RealIssuer
) -> None:
    """Behind a proxy all have one address, and nobody can guess a code."""
    statuses = set()
    for _ in range(int(ATTEMPTS) + 1):
        state = begun(client).params["state"]
        query = {"code": "x" * 5_000, "state": state}
        statuses.add(client.get(CALLBACK, query_string=query).status_code)
    assert statuses == {403}
    assert signed_in(client, issuer).status_code == 200


def test_a_session_goes_on_with_another_token_before_one_ends(
    served: Served, client: FlaskClient, tenant: Caller, issuer: RealIssuer
) -> None:
    """Twice, as the issuer gives another thing to renew it with each time."""
    signed_in(client, issuer)
    for ended in (False, True):
        before = stored(served)
        assert client.get("/console/session").status_code == 204
        assert stored(served) == before, "it is not due"
        due(served, ended=ended)
        assert client.get("/console/devices").status_code == 200
        after = stored(served)
        assert None not in after
        assert before[0] != after[0] and before[1] != after[1]


def test_many_requests_at_once_renew_it_once(
    served: Served, client: FlaskClient, tenant: Caller, issuer: RealIssuer
) -> None:
    """An issuer takes it for theft where the same thing is renewed twice."""
    signed_in(client, issuer)
    cookie = client.get_cookie(COOKIE)
    assert cookie is not None
    due(served, ended=True)
    statuses = []

    def ask() -> None:
        other = served.app.test_client()
        other.set_cookie(COOKIE, cookie.value)
        statuses.append(other.get("/console/devices").status_code)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    # One that came while the issuer took its time may have been asked to try again.
    assert set(statuses) <= {200, 503}
    assert 200 in statuses
    due(served)
    assert client.get("/console/devices").status_code == 200


def test_while_the_issuer_is_away_a_session_goes_on_until_its_token_ends(
    served: Served,
    client: FlaskClient,
    tenant: Caller,
    issuer: RealIssuer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(renewing, "WAIT_SECONDS", 0.1)
    signed_in(client, issuer)
    issuer.stop()
    try:
        due(served)
        assert client.get("/console/devices").status_code == 200
        due(served, ended=True)
        assert [client.get("/console/devices").status_code for _ in range(2)] == [503, 503]
        assert client.get("/console/api/service-objects").status_code == 503
    finally:
        issuer.start()
    due(served, ended=True)
    # It has forgotten all that it has given.
    assert client.get("/console/devices").status_code == 303
    assert client.get("/console/session").status_code == 401


def test_a_browser_signs_in_though_the_issuer_is_another_site(
    browser: Browser, served: Served, tenant: Caller, issuer: RealIssuer, settings: Settings
) -> None:
    """`localhost` and `127.0.0.1` are: what is strict, or not of ours, the browser refuses."""
    tenant.create()
    server = make_server("127.0.0.1", settings.api.port, served.app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with person(browser, settings.api.port) as visitor:
            visitor.url = f"http://localhost:{settings.api.port}"
            visitor.page.route("**/favicon.ico", lambda route: route.abort())
            _signs_in(visitor, issuer)
    finally:
        server.shutdown()
        thread.join()


def _signs_in(visitor: Person, issuer: RealIssuer) -> None:
    visitor.open("/console/usage")
    visitor.sees("Sign in at 127.0.0.1")
    visitor.look("sign-in-issuer")
    visitor.write("Tenant", "ours")
    visitor.press(f"Sign in at 127.0.0.1:{issuer.port}")
    visitor.page.locator("input[name=login]").fill("alice")
    visitor.page.locator("input[name=password]").fill("x")
    visitor.page.keyboard.press("Enter")
    visitor.page.get_by_role("button", name="Continue").click()
    visitor.sees("Used in the last day")
    assert visitor.page.evaluate("document.cookie") == ""
    visitor.press("Sign out")
    visitor.sees("sign out there, too")
    visitor.look("signed-out")
    visitor.wrong.clear()
