"""Memory of a browser with a stream's page that stays open: at first, and as time goes by."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks import processes
from benchmarks.console.device import Device
from benchmarks.console.looking import Looking, looking

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LINES = 6
"""Looks after the first one."""
SETTLED_MILLISECONDS = 5_000


def measure(
    browser: Browser, url: str, token: str, device: Device, rate: int, minutes: float
) -> None:
    """Print a line at the beginning, and for each part of the time."""
    print(f"{'minute':>7} {'JavaScript MB':>14} {'nodes':>7} {'page MB':>8} {'browser MB':>11}")
    with looking(browser, url, token) as one, device.sending(rate) as sent:
        one.open(device.page)
        one.live()
        one.page.wait_for_timeout(SETTLED_MILLISECONDS)
        began = time.monotonic()
        for minute in _minutes(minutes):
            until = began + minute * 60
            while (left := until - time.monotonic()) > 0:
                one.page.wait_for_timeout(min(left, 10) * 1_000)
            _tell(browser, one, minute)
        print(f"{sent.count:,} points were sent, {one.seen()['heard']:,.0f} heard", flush=True)


def _minutes(minutes: float) -> Iterator[float]:
    return (minutes * part / LINES for part in range(LINES + 1))


def _tell(browser: Browser, one: Looking, minute: float) -> None:
    heap, nodes = one.heap_megabytes(), one.nodes()
    page, all_of_it = _megabytes(browser)
    print(f"{minute:>7.1f} {heap:>14.2f} {nodes:>7,} {page:>8.0f} {all_of_it:>11.0f}", flush=True)


def _megabytes(browser: Browser) -> tuple[float, float]:
    """Return the memory of the largest process that renders, and of all of the browser."""
    session = browser.new_browser_cdp_session()
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    sizes = [(each["type"], processes.memory_megabytes(each["id"])) for each in found]
    rendering = [size for kind, size in sizes if kind == "renderer"]
    return max(rendering, default=0.0), sum(size for _, size in sizes)
