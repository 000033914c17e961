"""The console's pages of a tenant with ten thousand streams: bounded, and nothing is hidden.

They are ten Service Objects with as many streams as a document may have, all of which feed one
more: what is shown is folded, found by name, and leafed through.
"""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Iterator

import pytest
from api_builders import Caller, Platform, Served, SwitchedDatabase
from console_visits import signed_in
from flask.testing import FlaskClient

from api.app import create_app
from api.console import topology
from sandbox.text import argument_names
from servioticy.settings import Settings

DEVICES, STREAMS = 10, 1_000
MOST_BYTES = 500_000
"""Of any page."""
NUMBER = {"type": "number"}


class Crowd:
    """A tenant with ten thousand streams, in the console."""

    def __init__(self, client: FlaskClient, tenant: Caller) -> None:
        self.client = client
        self.tenant = tenant
        sent = {f"s{number}": {"channels": {"v": NUMBER}} for number in range(STREAMS)}
        self.devices = [
            tenant.create({"version": "0.2.0", "name": f"Hall {number}", "streams": sent})
            for number in range(DEVICES)
        ]
        groups = {
            f"g{number}": {"soIds": self.devices, "stream": f"s{number}"} for number in range(100)
        }
        made = {
            f"mean {number}": {
                "channels": {
                    "v": {**NUMBER, "current-value": f"function(g{number}) {{ return 1 }}"}
                }
            }
            for number in range(100)
        }
        self.means = tenant.create(
            {"version": "0.2.0", "name": "Means", "groups": groups, "streams": made}
        )

    def page(self, path: str) -> str:
        answer = self.client.get(f"/console/{path}")
        assert answer.status_code == 200, answer.text
        assert len(answer.data) < MOST_BYTES, f"{path} has {len(answer.data)} bytes"
        return answer.text

    def boxes(self, query: str = "") -> list[str]:
        page = self.page(f"topology{query}")
        found = re.findall(r'class="title">(.*?)</text>.*?class="about">(.*?)</text>', page, re.S)
        return [html.unescape(f"{title}: {about}") for title, about in found]


@pytest.fixture(scope="module")
def crowd(database: SwitchedDatabase) -> Iterator[Crowd]:
    """Made once; no test here changes anything."""
    backend = Platform(database)
    app = create_app(backend.ports, Settings(), time.time, argument_names)
    served = Served(app, backend)
    tenant = served.tenant("a")
    yield Crowd(signed_in(served, tenant.token), tenant)


@pytest.fixture(autouse=True)
def _there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is: what is bounded here is bytes."""
    monkeypatch.setattr(topology, "SECONDS", 600.0)


def test_the_overview_lists_devices(crowd: Crowd) -> None:
    page = crowd.page("devices")
    assert page.count('data-name="Device"') == DEVICES + 1
    assert crowd.page("devices?name=hall 7").count('data-name="Device"') == 1


def test_a_device_is_leafed_through(crowd: Crowd) -> None:
    """Each of its streams is on one page, with a form for a test update."""
    names: list[str] = []
    path: str | None = f"devices/{crowd.devices[3]}"
    while path is not None:
        page = crowd.page(path)
        names += re.findall(r'<input type="hidden" name="stream" value="(\w+)">', page)
        following = re.search(r'href="/console/([^"]*)">More streams', page)
        path = following[1] if following else None

    assert names == [f"s{number}" for number in range(STREAMS)]


@pytest.mark.parametrize(
    ("page", "first"), [("20", 950), ("0", 0), ("21", 0), ("x", 0), ("9" * 30, 0)]
)
def test_a_page_that_is_none_is_the_first(crowd: Crowd, page: str, first: int) -> None:
    text = crowd.page(f"devices/{crowd.devices[0]}?page={page}")
    assert f'name="stream" value="s{first}"' in text


def test_the_topology_has_a_box_for_each_device(crowd: Crowd) -> None:
    boxes = crowd.boxes()
    assert sorted(boxes) == sorted(
        [*(f"Hall {number}: 1,000 streams" for number in range(DEVICES)), "Means: 100 streams"]
    )
    page = crowd.page("topology")
    assert "There are 10,100 streams here" in page
    assert "Not all of it is shown" not in page
    assert page.count("<path d=") == DEVICES


def test_a_box_knows_what_is_derived_in_it(crowd: Crowd) -> None:
    """As its colours are those of what is inside; what devices send has none."""
    (inside,) = re.findall('data-inside="([^"]*)"', crowd.page("topology"))
    assert json.loads(html.unescape(inside)) == {
        crowd.means: [f"mean {number}" for number in range(100)]
    }


def test_a_box_that_is_opened_shows_as_much_as_may_be(crowd: Crowd) -> None:
    opened = crowd.boxes(f"?open={crowd.devices[2]}&open={crowd.means}")
    assert len(opened) == 500
    assert "Not all of it is shown" in crowd.page(f"topology?open={crowd.devices[2]}")
    means = crowd.boxes(f"?open={crowd.means}")
    assert sum(each.endswith(": Means") for each in means) == 100


def test_an_address_with_much_to_open_makes_no_larger_page(crowd: Crowd) -> None:
    text = "&open=".join(["x" * 50] * 100)
    assert len(crowd.boxes(f"?open={text}")) == DEVICES + 1
    every = "&open=".join(crowd.devices)
    assert len(crowd.boxes(f"?open={every}")) == 500


def test_a_stream_is_found_among_all(crowd: Crowd) -> None:
    boxes = crowd.boxes("?streamName=S777")
    assert boxes == [f"s777: Hall {number}" for number in range(DEVICES)]
    boxes = crowd.boxes("?streamName=s77&name=hall 4")
    assert sorted(boxes) == sorted(
        ["s77: Hall 4", "mean 77: Means", *(f"s77{number}: Hall 4" for number in range(10))]
    )


def test_with_all_that_a_found_one_is_computed_from(crowd: Crowd) -> None:
    boxes = crowd.boxes("?streamName=mean 42")
    assert sorted(boxes) == sorted(
        ["mean 42: Means", *(f"s42: Hall {number}" for number in range(DEVICES))]
    )


def test_who_looks_for_what_all_have_sees_how_many(crowd: Crowd) -> None:
    boxes = crowd.boxes("?streamName=s")
    halls = [f"Hall {number}: 1,000 of 1,000 found" for number in range(DEVICES)]
    assert sorted(boxes) == sorted([*halls, "Means: 100 streams"])
