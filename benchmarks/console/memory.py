"""Memory of a browser with a stream's page that stays open: at first, and as time goes by."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import processes
from benchmarks.console.device import Device
from benchmarks.console.looking import Looking, looking

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SETTLED_MILLISECONDS = 5_000


class Look(NamedTuple):
    """What there was in one minute, in MB."""

    minute: float
    heap: float
    nodes: int
    page: float
    browser: float
    """of all of its processes"""


def measure(
    browser: Browser, url: str, token: str, device: Device, rate: int, minutes: float
) -> None:
    """Print a line at the beginning, one for each minute, and by how much it has grown."""
    print(f"{'minute':>7} {'JavaScript MB':>14} {'nodes':>7} {'page MB':>8} {'browser MB':>11}")
    looks = list[Look]()
    with looking(browser, url, token) as one, device.sending(rate) as sent:
        one.open(device.page)
        one.live()
        one.page.wait_for_timeout(SETTLED_MILLISECONDS)
        began = time.monotonic()
        for minute in each_minute(minutes):
            until = began + minute * 60
            while (left := until - time.monotonic()) > 0:
                one.page.wait_for_timeout(min(left, 10) * 1_000)
            looks.append(_look(browser, one, minute))
        print(f"{sent.count:,} points were sent, {one.seen()['heard']:,.0f} heard")
    print(grown(looks), flush=True)


def each_minute(minutes: float) -> Iterator[float]:
    """Yield 0, each whole minute, and the end."""
    yield from map(float, range(int(minutes) + 1))
    if minutes > int(minutes):
        yield minutes


def grown(looks: list[Look]) -> str:
    """Return what an hour would add, by the line that is nearest to the second half of all looks.

    In the first half caches fill, and code is compiled.
    """
    half = looks[len(looks) // 2 :]
    if len(half) < 2:
        return "too short to say how it grows"
    parts = [
        f"{name} {60 * _slope([(each.minute, each[place]) for each in half]):+.1f}"
        for place, name in ((1, "JavaScript"), (3, "page"), (4, "browser"))
    ]
    return f"in the second half it grows by so many MB an hour: {', '.join(parts)}"


def _slope(points: list[tuple[float, float]]) -> float:
    count = len(points)
    x, y = sum(at for at, _ in points) / count, sum(value for _, value in points) / count
    wide = sum((at - x) ** 2 for at, _ in points)
    return sum((at - x) * (value - y) for at, value in points) / wide


def _look(browser: Browser, one: Looking, minute: float) -> Look:
    heap, nodes = one.heap_megabytes(), one.nodes()
    look = Look(minute, heap, nodes, *_megabytes(browser))
    print(
        f"{minute:>7.1f} {heap:>14.2f} {nodes:>7,} {look.page:>8.0f} {look.browser:>11.0f}",
        flush=True,
    )
    return look


def _megabytes(browser: Browser) -> tuple[float, float]:
    """Return the memory of the largest process that renders, and of the browser's whole tree."""
    session = browser.new_browser_cdp_session()
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    rendering = [each["id"] for each in found if each["type"] == "renderer"]
    first = next(each["id"] for each in found if each["type"] == "browser")
    page = max(map(processes.memory_megabytes, rendering), default=0.0)
    return page, sum(map(processes.memory_megabytes, processes.tree(first)))
