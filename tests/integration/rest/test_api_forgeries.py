"""Nobody becomes another, takes what is another's share, or writes lines of the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from api_builders import NOW, SIMPLE, UPDATE, Caller, Platform, Served
from werkzeug.test import TestResponse

from api.app import create_app
from sandbox.text import argument_names
from servioticy import logs
from servioticy.settings import Settings, changed

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "error.json").read_text())
STATEMENT = "'; DELETE FROM streams; --"


def refused(answer: TestResponse, status: int) -> None:
    assert answer.status_code == status, answer.text
    jsonschema.validate(answer.get_json(), SCHEMA)


@pytest.fixture
def as_before() -> Iterator[None]:
    """What `configure` changes is of the whole process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in logs.OURS}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


FORGED = [
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
    "Bearer eyJhbGciOiJub25lIn0.eyJ0ZW5hbnRfaWQiOjF9.",
    "eyJhbGciOiJIUzI1NiIsImtpZCI6Ii4uLy4uL2V0Yy9wYXNzd2QifQ.eyJzdWIiOiIxIn0.AAAA",
    *("secret", "null", "undefined", "0", "1", "*", "%", STATEMENT, "' OR '1'='1", "x" * 10_000),
]


@pytest.mark.parametrize("token", FORGED, ids=range(len(FORGED)))
def test_a_forged_token_is_refused(token: str, served: Served, alice: Caller) -> None:
    """Tokens mean nothing by themselves: there is no algorithm that one could choose."""
    refused(Caller(served.app.test_client(), token).ask("GET", "/"), 403)


@pytest.mark.parametrize("at", [0, 1, 20, -1])
def test_a_token_with_one_letter_changed_is_refused(at: int, alice: Caller) -> None:
    letters = list(alice.token)
    letters[at] = "A" if letters[at] != "A" else "B"

    for token in ("".join(letters), alice.token.swapcase(), alice.token[:-1], alice.token + "A"):
        refused(Caller(alice.client, token).ask("GET", "/"), 403)


def test_nobody_gives_an_object_to_another_or_himself_more(alice: Caller, bob: Caller) -> None:
    assigned = dict.fromkeys(("tenant", "tenant_id", "tenantId", "owner", "quota"), 2)
    ours = {"id": "mine", "version": 7, "createdAt": 1, "updatedAt": 1, "userId": "bob"}
    so = alice.create({**SIMPLE, **assigned, **ours})
    alice.ask("PATCH", f"/{so}", json=assigned, content_type="application/merge-patch+json")
    body = {"name": "n", "rights": ["everything"], "tenant_id": 2}

    assert so != "mine"
    assert alice.ask("GET", "/").get_json() == [so]
    assert bob.ask("GET", "/").get_json() == []
    refused(bob.ask("GET", f"/{so}"), 401)
    refused(alice.ask("POST", "/tokens", json=body), 400)


def test_many_tokens_of_a_tenant_have_one_share(backend: Platform) -> None:
    """And who is told to come later is told when."""
    settings = changed(Settings(), tenant_bytes_per_second=2 * len(UPDATE) - 1)
    app = create_app(backend.ports, settings, lambda: NOW, argument_names)
    limited = Served(app, backend)
    limited.stop_clock()
    alice, bob = limited.tenant("alice"), limited.tenant("bob")
    so, other = alice.create(), bob.create()
    wanted = {"name": "another", "serviceObject": so, "rights": ["send"]}
    tokens = [alice.ask("POST", "/tokens", json=wanted).get_json()["token"] for _ in range(3)]
    answers = [Caller(alice.client, each).put(so) for each in tokens]

    assert [each.status_code for each in answers] == [202, 429, 429]
    assert {each.headers["Retry-After"] for each in answers[1:]} == {"1"}
    for each in answers[1:]:
        refused(each, 429)
    assert bob.put(other).status_code == 202


@pytest.mark.usefixtures("as_before")
def test_nothing_that_is_sent_begins_a_line_of_the_log(
    served: Served,
    alice: Caller,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where a request fails with what it holds in the message."""

    def fail(*_: object) -> None:
        raise KeyError('x\r\n\x1b[31m{"event":"forged"}')

    monkeypatch.setattr(served.platform.ports.service_objects, "ids", fail)
    logs.configure("DEBUG")
    alice.ask("GET", "/?access_token=secret%0d%0a%1b[31m", headers={"User-Agent": "\x1b[31m"})
    written = capsys.readouterr().err

    assert [json.loads(line)["event"] for line in written.splitlines()] == ["request_failed"]
    assert "\x1b" not in written
    assert "secret" not in written
    assert alice.token not in written
