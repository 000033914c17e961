"""Addresses in answers are ours, not what a request calls us."""

from __future__ import annotations

import time

import pytest
from api_builders import SIMPLE, Platform, Served

from api.app import create_app
from sandbox.text import argument_names
from servioticy.settings import Settings, changed


@pytest.mark.parametrize(
    ("settings", "base"),
    [
        (Settings(), "http://127.0.0.1:8080/"),
        (changed(Settings(), host="::1", api_port=80), "http://[::1]:80/"),
        (changed(Settings(), host="0.0.0.0"), "/"),
        (
            changed(Settings(), host="0.0.0.0", public_url="https://iot.example/api/"),
            "https://iot.example/api/",
        ),
    ],
)
def test_a_location_begins_with_what_the_operator_says(
    backend: Platform, settings: Settings, base: str
) -> None:
    served = Served(create_app(backend.ports, settings, time.time, argument_names), backend)
    alice = served.tenant("alice")

    answer = alice.ask("POST", "/", json=SIMPLE, headers={"Host": "evil.example"})

    assert answer.headers["Location"] == base + answer.get_json()["id"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
