"""The console over a slow network, over one that breaks off, and how much goes over it."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from browsing import PICTURES, Person, browser, fresh, visitor
from cellars import Cellar, cellar
from flaky_receiver import FlakyReceiver
from playwright.sync_api import Route
from running_platform import RunningPlatform, until

__all__ = ["browser", "cellar", "fresh", "visitor"]

SLOW = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 20_000}
"""A phone with little reception: milliseconds, and bytes a second."""
BYTES = 60_000
"""Of a page that is opened first of all, with all that it loads."""
LOOKS = 100
"""For the first paint, which may come after all is loaded."""
NOT_COME = "Failed to load|WebSocket connection to"
SECONDS = 300.0
PAGES = [
    *("devices", "topology", "workflows", "operators", "deliveries", "jobs", "usage"),
    *("grants", "members", "tokens", "audit"),
]


class Wire:
    """What goes over the wire to a page."""

    def __init__(self, visitor: Person) -> None:
        self._page = visitor.page
        self.session = visitor.page.context.new_cdp_session(visitor.page)
        self.session.send("Network.enable")
        self.session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        self.session.on("Network.loadingFinished", self._finished)
        self.size = 0.0

    def _finished(self, event: Any) -> None:
        self.size += event["encodedDataLength"]

    def open(self, visitor: Person, path: str) -> tuple[int, int]:
        """Return bytes, and milliseconds to the first content that is painted."""
        self.size = 0.0
        visitor.open(path)
        self._page.wait_for_load_state("load")
        paint = 0.0
        for _ in range(LOOKS):
            paint = self._page.evaluate(
                "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
            )
            if paint:
                break
            self._page.wait_for_timeout(50)
        return round(self.size), round(paint)


def test_pages_are_light(visitor: Person, cellar: Cellar) -> None:
    cellar.send(cellar.newest, 20)
    visitor.sign_in(cellar.token)
    wire = Wire(visitor)
    stream = f"streams/{cellar.device}/air"
    found = {path: wire.open(visitor, f"/console/{path}") for path in PAGES}
    found["editor"] = wire.open(visitor, f"/console/devices/{cellar.derived}/document")
    found["stream"] = wire.open(visitor, f"/console/{stream}")
    found["trace"] = wire.open(visitor, f"/console/{stream}/trace?timestamp={cellar.newest}")
    lines = [f"{path:12} {size:7,} bytes {paint:5} ms\n" for path, (size, paint) in found.items()]
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "weights.txt").write_text("".join(lines))

    assert {path: size for path, (size, _) in found.items() if size > BYTES} == {}
    assert all(size > 1_000 for size, _ in found.values())


def test_a_slow_network_shows_each_page_all_the_same(visitor: Person, cellar: Cellar) -> None:
    visitor.sign_in(cellar.token)
    wire = Wire(visitor)
    wire.session.send("Network.emulateNetworkConditions", SLOW)
    visitor.press("Deliveries", role="link")
    visitor.sees("display")
    visitor.press("Access", role="link")
    visitor.sees("Nothing is granted")
    visitor.press("Topology", role="link")
    visitor.page.get_by_text("live", exact=True).first.wait_for()


def test_a_test_is_followed_though_the_api_is_away_meanwhile(
    visitor: Person, cellar: Cellar
) -> None:
    """What the page asks for fails twice: by the network, and by an answer that says so."""
    left = ["failed", "503"]

    def away(route: Route) -> None:
        if not left:
            route.continue_()
        elif left.pop() == "failed":
            route.abort()
        else:
            route.fulfill(status=503, body="{}")

    with FlakyReceiver() as receiver:
        body = {"callback": "http", "destination": f"http://127.0.0.1:{receiver.port}/in"}
        id_ = cellar.subscribe(body)
        visitor.sign_in(cellar.token)
        visitor.page.route("**/console/api/subscriptions/*/test", away)
        visitor.open(f"/console/deliveries/{id_}")
        visitor.press("Send a test")
        visitor.sees("200 OK")
    # The browser says itself what did not come.
    visitor.wrong = [each for each in visitor.wrong if "Failed to load" not in each]


def test_a_page_says_that_the_platform_is_away_and_goes_on_by_itself(
    visitor: Person, cellar: Cellar, platform: RunningPlatform
) -> None:
    """The API and the program of the sockets are killed; nobody begins them until it was told."""
    cellar.send(cellar.newest - 1_000, 20)
    visitor.sign_in(cellar.token)
    visitor.open(f"/console/streams/{cellar.device}/air")
    visitor.page.get_by_text("live", exact=True).first.wait_for()
    visitor.sees("most 20")
    with held(platform):
        for program in ("api", "delivery"):
            os.kill(platform.pids()[program], signal.SIGKILL)
        visitor.sees("not connected")
        visitor.press("Day")
        visitor.sees("The platform does not answer just now. It is asked again by itself.")

    channels = {"temperature": {"current-value": 33.25}}
    update = {"channels": channels, "lastUpdate": cellar.newest}

    def sent() -> bool:
        path = f"/{cellar.device}/streams/air"
        return platform.request("PUT", path, update, cellar.token)[0] == 202

    until(sent, SECONDS)
    visitor.sees("most 33.25")
    visitor.page.locator("[data-now=temperature]", has_text="33.25").wait_for()
    visitor.page.get_by_text("live", exact=True).first.wait_for()
    # The browser says itself what did not come.
    visitor.wrong = [each for each in visitor.wrong if not re.search(NOT_COME, each)]


@contextmanager
def held(platform: RunningPlatform) -> Iterator[None]:
    """What begins programs anew begins none meanwhile."""
    platform.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        platform.process.send_signal(signal.SIGCONT)
