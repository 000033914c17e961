"""The page of windows: all streams over windows, how far event time is, and what holds it back."""

from __future__ import annotations

import re

import pytest
from api_builders import Caller, Platform, Served
from console_visits import client, tenant
from flask.testing import FlaskClient

from api.console import windows
from servioticy.domain.evaluators.windows.head import Head, Member, Pane, write

__all__ = ["client", "tenant"]

BEGIN = 1_700_000_000
MEAN = {"type": "number", "current-value": "function(a) { return a.mean('x') }"}
WINDOW = {"type": "tumbling", "size": "10s", "lateness": "1m"}
STREAMS = {
    "a": {"channels": {"x": {"type": "number"}}},
    "mean": {"window": WINDOW, "channels": {"x": MEAN}},
}
HALL = {"version": "0.2.0", "name": "Hall <1>", "streams": STREAMS}


def test_who_has_none_is_told_what_makes_one(client: FlaskClient, tenant: Caller) -> None:
    tenant.create()

    page = client.get("/console/windows").text
    assert "No stream is computed over windows" in page
    assert '"type": "tumbling"' in page


def test_each_is_listed_with_what_it_waits_for(
    client: FlaskClient, tenant: Caller, backend: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = tenant.create(HALL)
    head = Head(b"", 1, 1, 0, 0, 1, BEGIN, f"{id_}/a", [Pane(BEGIN, BEGIN + 3, BEGIN + 5)])
    head.members[f"{id_}/a"] = Member(BEGIN + 5, BEGIN + 5, 0)
    monkeypatch.setattr(type(backend.ports.history), "kept", lambda *_: write(head))

    page = client.get("/console/windows").text
    assert f'href="/console/streams/{id_}/mean">Hall &lt;1&gt; \u203a mean</a>' in page
    assert "tumbling, size 10s, lateness 1m" in page
    assert '<td data-name="Open" class="number">1</td>' in page
    assert "2023-11-14 22:13:30" in page  # where the open one ends
    assert "Hall &lt;1&gt; \u203a a<br>" in page
    assert re.search("has come to <time [^>]*>2023-11-14 22:13:25", page)


def test_of_more_than_a_page_has_the_first_are_told_and_it_says_so(
    client: FlaskClient, tenant: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "OBJECTS", 2)
    monkeypatch.setattr(windows, "STREAMS", 1)
    for _ in range(3):
        tenant.create(HALL)

    page = client.get("/console/windows").text
    assert page.count('data-name="Stream"') == 1
    assert "These are the first ones of this page." in page
    assert 'href="/console/windows?' in page


def test_others_windows_are_not_there(client: FlaskClient, served: Served) -> None:
    served.tenant("other").create(HALL)

    assert "Hall" not in client.get("/console/windows").text
