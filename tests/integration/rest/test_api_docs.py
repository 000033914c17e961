"""The page of the API: it loads from us alone, and says so to the browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from api_builders import NOW, Platform, Served
from flask.testing import FlaskClient

from api.app import create_app
from api.resources.descriptions import OURS, THEIRS
from sandbox.text import argument_names
from schemas import contracts
from servioticy.settings import Settings, changed


class Addresses(HTMLParser):
    """All that a page names, and what would run without being loaded."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inline: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.found += [named[name] or "" for name in ("src", "href") if name in named]
        self.found += [named["data-description"] or ""] if "data-description" in named else []
        self.inline += [tag] if tag == "style" or (tag == "script" and "src" not in named) else []
        self.inline += [name for name in named if name.startswith("on") or name == "style"]


@pytest.fixture
def client(served: Served) -> FlaskClient:
    return served.app.test_client()


def test_the_page_and_its_files_name_no_other_host(client: FlaskClient) -> None:
    page = Addresses(client.get("/docs").text)
    assert page.inline == []
    assert {each for each in page.found if each != "data:,"} == {
        "/openapi.json",
        *(f"/docs/{name}" for name in (*OURS, *THEIRS)),
    }
    for each in page.found:
        if each.startswith("/"):
            assert client.get(each).status_code == 200, each

    styles = client.get("/docs/swagger-ui.css").text
    named = re.findall(r"url\(\s*[\"']?([^)\"']*)", styles)
    assert named
    assert all(each.startswith(("data:", "#")) for each in named)
    assert "@import" not in styles
    for name in OURS:
        assert "//" not in re.sub(r"// .*", "", client.get(f"/docs/{name}").text)


def test_the_browser_is_told_to_load_from_us_alone(client: FlaskClient) -> None:
    """Whatever the files from the package would like to load: a script of theirs may."""
    policy = dict(
        each.strip().split(" ", 1)
        for each in client.get("/docs").headers["Content-Security-Policy"].split(";")
    )

    assert policy["default-src"] == "'none'"
    sources = {source for each in policy.values() for source in each.split()}
    assert sources == {"'none'", "'self'", "data:"}
    assert policy["img-src"] == "'self' data:"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"


def test_files_are_what_their_names_say(client: FlaskClient) -> None:
    """The browser takes them by their type only (nosniff)."""
    types = {name: client.get(f"/docs/{name}").content_type for name in (*OURS, *THEIRS)}

    assert types == {
        "page.js": "text/javascript; charset=utf-8",
        "swagger-ui.css": "text/css; charset=utf-8",
        "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    }


@pytest.mark.parametrize("name", ["acorn.js", "page.html", "..", "%2e%2e%2fwsgi.py", "a%00b"])
def test_no_other_file_is_served(client: FlaskClient, name: str) -> None:
    assert client.get(f"/docs/{name}").status_code == 404


def test_without_the_download_the_reason_is_told(backend: Platform, tmp_path: object) -> None:
    settings = changed(Settings(), javascript=str(tmp_path))
    app = create_app(backend.ports, settings, lambda: NOW, argument_names)
    answer = app.test_client().get("/docs/swagger-ui.css")

    assert answer.status_code == 404
    assert "make setup" in answer.get_json()["message"]


def test_below_a_path_of_a_proxy_all_addresses_begin_with_it(backend: Platform) -> None:
    settings = changed(Settings(), public_url="https://example.org/iot/")
    client = create_app(backend.ports, settings, lambda: NOW, argument_names).test_client()
    page = Addresses(client.get("/docs").text)

    assert all(each.startswith(("/iot/", "data:")) for each in page.found)
    assert client.get("/openapi.json").get_json()["servers"] == [{"url": "/iot"}]


def test_the_contracts_are_served_as_they_are(client: FlaskClient) -> None:
    assert client.get("/openapi.json").get_json() == contracts.openapi()
    assert client.get("/asyncapi.json").get_json() == contracts.asyncapi()
