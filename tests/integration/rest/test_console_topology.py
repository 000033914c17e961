"""The topology over the real API, without a browser: nothing of it needs a script."""

from __future__ import annotations

import html
import re
import time

import pytest
from api_builders import Caller, Platform, Served
from console_visits import client, tenant
from flask.testing import FlaskClient

from api.app import create_app
from api.console import topology
from api.console.topology import ALONE, MOST, SOURCES
from sandbox.text import argument_names
from servioticy.settings import Settings

__all__ = ["client", "tenant"]

NUMBER = {"type": "number"}


@pytest.fixture
def served(backend: Platform) -> Served:
    return Served(create_app(backend.ports, Settings(), time.time, argument_names), backend)


@pytest.fixture(autouse=True)
def _there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(topology, "SECONDS", 600.0)


def a_device(tenant: Caller, name: str, *streams: str) -> str:
    sent = {each: {"channels": {"v": NUMBER}} for each in streams}
    return tenant.create({"version": "0.2.0", "name": name, "streams": sent})


def computing(tenant: Caller, name: str, source: tuple[str, str], *streams: str) -> str:
    """Another Service Object, all of whose streams are computed from that one."""
    made = {**NUMBER, "current-value": "function(them) { return iot.value(them) }"}
    return tenant.create(
        {
            "version": "0.2.0",
            "name": name,
            "groups": {"them": {"soIds": [source[0]], "stream": source[1]}},
            "streams": {each: {"channels": {"v": made}} for each in streams},
        }
    )


def text_of(client: FlaskClient, query: str) -> str:
    answer = client.get(f"/console/topology?{query}")
    assert answer.status_code == 200, answer.text
    return answer.text


def boxes(page: str) -> list[tuple[str, str, bool]]:
    """What stands in the boxes, and whether it is what was looked for."""
    found = re.findall(
        r'<a [^>]*class="node([^"]*)".*?class="title">(.*?)</text>.*?class="about">(.*?)</text>',
        page,
        re.DOTALL,
    )
    return [(html.unescape(t), html.unescape(about), "found" in how) for how, t, about in found]


def arrows(page: str) -> int:
    return page.count("<path d=")


@pytest.fixture
def house(tenant: Caller) -> str:
    """Two halls, and what is computed from one of them."""
    hall = a_device(tenant, "Hall", "air", "light")
    a_device(tenant, "Attic", "air in the attic")
    warm = computing(tenant, "Warmth", (hall, "air"), "is warm")
    computing(tenant, "Alarm", (warm, "is warm"), "ring")
    return hall


def test_a_stream_is_found_whosever_device_it_is(client: FlaskClient, house: str) -> None:
    page = text_of(client, "streamName=AIR")

    assert sorted(boxes(page)) == [
        ("air", "Hall", True),
        ("air in the attic", "Attic", True),
        ("is warm", "Warmth", False),
        ("ring", "Alarm", False),
    ]
    assert arrows(page) == 2
    assert "2 streams on this page have" in page
    assert f'<li><a href="/console/streams/{house}/air">Hall \u203a air</a></li>' in page


def test_with_what_it_is_computed_from_itself(client: FlaskClient, house: str) -> None:
    """And not with what else is computed from that, or with what that is computed from."""
    page = text_of(client, "streamName=warm")
    assert sorted(boxes(page)) == [
        ("air", "Hall", False),
        ("is warm", "Warmth", True),
        ("ring", "Alarm", False),
    ]
    assert arrows(page) == 2

    page = text_of(client, "streamName=ring")
    assert sorted(boxes(page)) == [("is warm", "Warmth", False), ("ring", "Alarm", True)]


def test_also_of_its_own_device(client: FlaskClient, tenant: Caller) -> None:
    made = {**NUMBER, "current-value": "function(raw) { return iot.value(raw) }"}
    streams = {"raw": NUMBER, "other": NUMBER, "mean": made}
    tenant.create(
        {
            "version": "0.2.0",
            "name": "Hall",
            "streams": {name: {"channels": {"v": channel}} for name, channel in streams.items()},
        }
    )

    page = text_of(client, "streamName=mean")
    assert sorted(boxes(page)) == [("mean", "Hall", True), ("raw", "Hall", False)]


def test_both_names_narrow_it(client: FlaskClient, house: str) -> None:
    found = boxes(text_of(client, "streamName=air&name=attic"))
    assert found == [("air in the attic", "Attic", True)]
    page = text_of(client, "streamName=light&name=attic")
    assert "No stream of a device with “attic” in its name has “light” in its name." in page
    assert "No stream has “&lt;b&gt;” in its name." in text_of(client, "streamName=%3Cb%3E")


def test_of_others_nothing_is_found(client: FlaskClient, served: Served, house: str) -> None:
    theirs = a_device(served.tenant("b"), "Secret", "air of others")
    assert theirs not in text_of(client, "streamName=air")


def test_the_next_page_looks_for_the_same(client: FlaskClient, tenant: Caller) -> None:
    for number in range(51):
        a_device(tenant, f"Hall {number}", "air", "light")
    first = text_of(client, "streamName=air&name=hall")
    following = re.search(r'href="/console/topology\?([^"]*)">Next page', first)
    assert following is not None
    second = text_of(client, html.unescape(following[1]))

    both = [*boxes(first), *boxes(second)]
    assert (len(boxes(first)), len(both)) == (50, 51)
    assert {(stream, is_found) for stream, _, is_found in both} == {("air", True)}


def test_what_is_found_stands_alone_where_all_else_is_folded(
    client: FlaskClient, tenant: Caller
) -> None:
    hall = a_device(tenant, "Hall", "air", "light")
    for number in range(6):
        names = [f"c{each}" for each in range(100)]
        computing(tenant, f"Many {number}", (hall, "air"), *names)

    page = text_of(client, "streamName=air")
    found = boxes(page)
    assert found[0] == ("air", "Hall", True)
    assert sorted(found[1:]) == [(f"Many {n}", "100 streams", False) for n in range(6)]
    assert "There are 601 streams here" in page
    opening = re.search(r'href="/console/topology\?([^"]*)" aria-label="Open Many 3', page)
    assert opening is not None
    opened = boxes(text_of(client, html.unescape(opening[1])))
    assert len(opened) == 106
    assert opened[0] == ("air", "Hall", True)


def test_more_than_can_stand_alone_is_told_by_its_boxes(
    client: FlaskClient, tenant: Caller
) -> None:
    a_device(tenant, "Hall", *(f"air {number}" for number in range(MOST)), "light")
    a_device(tenant, "Attic", "air")

    page = text_of(client, "streamName=air")
    assert sorted(boxes(page)) == [
        ("Hall", f"{MOST} of {MOST} found", True),
        ("air", "Attic", True),
    ]
    assert f"{MOST + 1} streams on this page have" in page
    few = text_of(client, "streamName=air&name=attic")
    assert len(boxes(few)) == 1
    assert MOST > ALONE


def test_of_many_sources_some_are_shown(client: FlaskClient, tenant: Caller) -> None:
    halls = [a_device(tenant, f"Hall {number}", "air") for number in range(SOURCES + 1)]
    made = {**NUMBER, "current-value": "function(halls) { return 1 }"}
    tenant.create(
        {
            "version": "0.2.0",
            "name": "Mean",
            "groups": {"halls": {"soIds": halls, "stream": "air"}},
            "streams": {"mean": {"channels": {"v": made}}},
        }
    )

    page = text_of(client, "streamName=mean")
    assert len(boxes(page)) == SOURCES + 1
    assert "Not all of it is shown" in page


def test_where_there_is_no_time_left_the_page_says_so(
    client: FlaskClient, house: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology, "SECONDS", -1.0)
    assert "Not all of it is shown" in text_of(client, "")


def test_both_ways_of_a_diamond_are_drawn(client: FlaskClient, tenant: Caller) -> None:
    hall = a_device(tenant, "Hall", "air")
    left, right = (computing(tenant, name, (hall, "air"), name) for name in ("left", "right"))
    made = {**NUMBER, "current-value": "function(one, other) { return 1 }"}
    groups = {
        name: {"soIds": [so], "stream": stream}
        for name, so, stream in (("one", left, "left"), ("other", right, "right"))
    }
    streams = {"both": {"channels": {"v": made}}}
    tenant.create({"version": "0.2.0", "name": "Both", "groups": groups, "streams": streams})
    assert arrows(text_of(client, "")) == 4
