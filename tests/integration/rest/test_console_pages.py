"""Pages of the console over the real API: what a browser is not needed for."""

from __future__ import annotations

import re
import time

import pytest
from api_builders import Caller, Platform, Served
from console_visits import client, csrf, tenant
from flask.testing import FlaskClient

from api.app import create_app
from api.console.starters import STARTERS, Starter
from sandbox.text import argument_names
from servioticy.domain.evaluators.windows.head import Head, Member, Pane, write
from servioticy.settings import Settings

__all__ = ["client", "tenant"]


@pytest.fixture
def served(backend: Platform) -> Served:
    """With a real clock: test updates are of now."""
    return Served(create_app(backend.ports, Settings(), time.time, argument_names), backend)


@pytest.mark.parametrize("kind", STARTERS, ids=lambda kind: kind.id)
def test_each_kind_to_begin_with_is_a_template_that_is_taken(
    tenant: Caller, kind: Starter
) -> None:
    answer = tenant.ask("POST", "/templates", json=kind.template)
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize("kind", STARTERS, ids=lambda kind: kind.id)
def test_each_derivation_of_it_is_a_document_that_is_taken(tenant: Caller, kind: Starter) -> None:
    channels = {name: {"type": "number"} for name in kind.channels}
    device = tenant.create({"streams": {kind.stream: {"channels": channels}}})
    for each in kind.derivations:
        document = each.document("x", device, kind.stream, kind.channel)
        answer = tenant.ask("POST", "/", json=document)
        assert answer.status_code == 201, answer.text
        assert not answer.get_json().get("warnings"), answer.text


def test_who_has_nothing_is_led_and_who_has_something_is_not(
    client: FlaskClient, tenant: Caller
) -> None:
    assert client.get("/console/").headers["Location"] == "/console/start"
    tenant.create()
    assert client.get("/console/").headers["Location"] == "/console/devices"


def test_the_list_of_devices_has_pages(client: FlaskClient, tenant: Caller) -> None:
    for _ in range(51):
        tenant.create()

    first = client.get("/console/devices").text
    following = re.search('href="([^"]*cursor[^"]*)">Next page', first)
    assert following is not None
    second = client.get(following[1].replace("&amp;", "&")).text
    assert (first.count('data-name="Device"'), second.count('data-name="Device"')) == (50, 1)


def test_a_form_without_what_our_pages_carry_changes_nothing(
    client: FlaskClient, tenant: Caller
) -> None:
    id_ = tenant.create()
    path = f"/console/devices/{id_}/test"
    form = {"stream": "a", "channel.x": "7"}

    assert client.post(path, data=form).status_code == 403
    assert client.post(path, data=form | {"csrf": csrf(client)}).status_code == 303


def test_what_the_api_refuses_a_page_says_in_its_words(
    client: FlaskClient, tenant: Caller
) -> None:
    id_ = tenant.create()
    form = {"stream": "a", "channel.x": "warm", "csrf": csrf(client)}

    answer = client.post(f"/console/devices/{id_}/test", data=form)
    assert answer.status_code == 400
    assert "number" in answer.text


def test_a_new_token_ends_the_one_before(client: FlaskClient, tenant: Caller) -> None:
    made = tenant.ask(
        "POST", "/", json={"streams": {"a": {"channels": {"x": {"type": "number"}}}}}
    )
    before = made.get_json()
    path = f"/console/devices/{before['id']}/token"

    page = client.post(path, data={"csrf": csrf(client)}).text
    token = re.search('<pre id="token"[^>]*>([0-9A-Za-z]{22})<', page)
    assert token is not None
    read = f"/{before['id']}/streams/a"
    for one, status in ((before["api_token"], 403), (token[1], 204)):
        answer = tenant.client.get(read, headers={"Authorization": one})
        assert answer.status_code == status


def test_a_stream_over_windows_says_which_are_open_and_what_they_wait_for(
    client: FlaskClient, tenant: Caller, backend: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = {"type": "number", "current-value": "function(a) { return a.mean('x') }"}
    window = {"type": "tumbling", "size": "10s"}
    streams = {
        "a": {"channels": {"x": {"type": "number"}}},
        "mean": {"window": window, "channels": {"x": channel}},
    }
    id_ = tenant.create({"version": "0.2.0", "streams": streams})
    path = f"/console/streams/{id_}/mean"
    assert "No window is open." in client.get(path).text

    begin = 1_700_000_000
    head = Head(b"", 1, 1, 0, 0, 1, begin, "so/a", [Pane(begin, begin + 3, begin + 5)])
    head.members["so/a"] = Member(begin + 5, begin + 5, 0)
    monkeypatch.setattr(type(backend.ports.history), "kept", lambda *_: write(head))
    status = tenant.ask("GET", f"/{id_}/streams/mean/status").get_json()["windows"]
    assert status == {
        "open": [{"start": begin, "end": begin + 10}],
        "updates": 1,
        "closed-until": begin,
        "held-back-by": "so/a",
        "reached": begin + 5,
    }
    page = client.get(path).text
    assert re.search("Event time waits for so/a, which has come to <time [^>]*>2023-11-14", page)
    assert "2023-11-14 22:13:30" in page


def test_a_value_is_cut(client: FlaskClient, served: Served, tenant: Caller) -> None:
    """A page is for people: it has no more of a device than can be looked at."""
    channels = {f"c{number}": {"type": "string"} for number in range(40)}
    so = tenant.create({"name": "Long", "streams": {"a": {"channels": channels}}})
    values = {name: {"current-value": "y" * 20_000} for name in channels}
    answer = tenant.ask("PUT", f"/{so}/streams/a", json={"channels": values, "lastUpdate": 5})
    assert answer.status_code == 202, answer.text
    served.store()

    for path in (f"devices/{so}", "devices", f"streams/{so}/a"):
        page = client.get(f"/console/{path}")
        assert page.status_code == 200
        assert len(page.data) < 200_000
        assert ">" + "y" * 200 + "\u2026<" in page.text
    assert "and 20 more" in client.get(f"/console/devices/{so}").text


def test_the_code_of_a_stream_is_text_on_its_page(client: FlaskClient, tenant: Caller) -> None:
    code = "function(a) { return '</pre><script>alert(1)</script>' ? 1 : 2 }"
    channel = {"type": "number", "current-value": code}
    streams = {
        "a": {"channels": {"x": {"type": "number"}}},
        "<b>": {"channels": {'"><img src=x>': channel}},
    }
    id_ = tenant.create({"version": "0.2.0", "streams": streams})

    page = client.get(f"/console/streams/{id_}/%3Cb%3E")
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert "<img src=x" not in page.text


@pytest.mark.parametrize("path", ["streams/{}/none", "streams/none/a", "devices/none", "nothing"])
def test_what_is_not_there_is_a_404_for_people(
    client: FlaskClient, tenant: Caller, path: str
) -> None:
    answer = client.get(f"/console/{path.format(tenant.create())}")
    assert (answer.status_code, "did not work" in answer.text) == (404, True)


def test_assets_are_asked_for_once(client: FlaskClient) -> None:
    page = client.get("/console/devices").text
    for path in set(re.findall('(?:src|href)="(/console/assets/[^"]*)"', page)):
        answer = client.get(path, headers={"Accept-Encoding": "gzip"})
        assert answer.headers["Cache-Control"].endswith("immutable")
        assert answer.headers["Content-Encoding"] == "gzip"
    assert client.get("/console/assets/other/console.css").status_code == 404


@pytest.mark.parametrize(
    ("came", "back"),
    [
        ("http://127.0.0.1:8080/console/grants?object=x", "/console/grants?object=x"),
        ("https://elsewhere.example/grants", None),
        ("", None),
    ],
)
def test_who_is_refused_is_led_back(client: FlaskClient, came: str, back: str | None) -> None:
    form = {"csrf": csrf(client), "object": "no-such-device"}
    answer = client.post("/console/grants", data=form, headers={"Referer": came})

    assert answer.status_code == 404
    found = re.search('href="([^"]+)">Back to where you were', answer.text)
    assert (found[1] if found else None) == back


def test_devices_are_offered_where_one_is_asked_for(
    client: FlaskClient, tenant: Caller, served: Served
) -> None:
    id_ = tenant.create({"name": "Hall <1>", "streams": {}})
    served.tenant("other").create({"name": "Cellar", "streams": {}})

    for path in ("grants", "tokens", "jobs", "aspects"):
        page = client.get(f"/console/{path}").text
        assert f'<option value="{id_}">Hall &lt;1&gt;</option>' in page
        assert "Cellar" not in page


def test_of_many_readers_some_are_told_and_how_many_more(
    client: FlaskClient, tenant: Caller
) -> None:
    code = {"type": "number", "current-value": "function(a) { return a }"}
    streams = {f"d{number}": {"channels": {"v": code}} for number in range(23)}
    a = {"channels": {"v": {"type": "number"}}}
    id_ = tenant.create({"version": "0.2.0", "name": "Hall", "streams": {"a": a, **streams}})

    page = client.get(f"/console/streams/{id_}/a").text
    assert page.count("Hall \u203a d") == 20
    assert "and 3 more" in page
