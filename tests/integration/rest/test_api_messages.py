"""What a newcomer does wrong, and what is said: the original's message, and what to do next."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import Caller, Served

MESSAGES: list[tuple[str, str, str, str]] = [
    ("GET", "/nothing/at/all", "Not found. Check the documentation", "docs/rest.md"),
    ("GET", "/{so}/streams/b", "This Service Object does not have this stream.", "/streams lists"),
    ("PUT", "/{so}/streams/b", "This Service Object does not have this stream.", "/streams lists"),
]


@pytest.mark.parametrize(("method", "path", "message", "next_"), MESSAGES)
def test_a_mistake_is_told_what_to_do_next(
    alice: Caller, method: str, path: str, message: str, next_: str
) -> None:
    so = alice.create()

    said: dict[str, Any] = alice.ask(method, path.format(so=so)).get_json()

    assert said["message"] == message
    assert said["detail"].startswith(message)
    assert next_ in said["detail"]


def test_an_unknown_token_is_told_how_to_get_one(served: Served) -> None:
    said = served.app.test_client().get("/", headers={"Authorization": "nobodys"}).get_json()

    assert said["message"] == "Access was denied!"
    assert "servioticy tenant create" in said["detail"]


@pytest.mark.parametrize(
    ("host", "warned"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("10.0.0.1", True),
        ("[::1]", True),
        ("192.0.2.1.example.org", False),
        ("8.8.8.8", False),
    ],
)
def test_an_address_that_is_not_called_is_told_when_it_is_named(
    alice: Caller, host: str, warned: bool
) -> None:
    so = alice.create()
    wanted = {"callback": "http", "destination": f"http://{host}:8080/"}

    said = alice.ask("POST", f"/{so}/streams/a/subscriptions", json=wanted)

    assert said.status_code == 201
    warnings = said.get_json().get("warnings", [])
    assert any("live_callback_networks" in each for each in warnings) == warned
