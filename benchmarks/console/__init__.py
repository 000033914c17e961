"""The console in a browser: first paint, bytes of its pages, live points a second, and memory.

A tenant with a stream of 2,000 updates on a platform of its own; browser, platform and whoever
sends share the machine. A tenant that has nothing goes through the first visit. Each page is
opened by a browser that knows nothing, and once more. Then a stream's page is open while its
device sends faster and faster: points that it hears, and frames that the browser makes meanwhile.
At last the same page stays open under a steady rate, and its memory is looked at each minute,
after a collection of what is left over.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks import ground
from benchmarks.chromium import FLAGS, chromium
from benchmarks.console import first_visit, memory, points, wire
from benchmarks.console.device import Device
from servioticy.errors import SetupError
from servioticy.settings import Settings
from servioticy.settings.places import api_url

if TYPE_CHECKING:
    from playwright.sync_api import Browser

VISIT, PAGES, POINTS, MEMORY = PARTS = ("visit", "pages", "points", "memory")


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print a table of pages, one of rates, and one of memory."""
    parser = argparse.ArgumentParser("servioticy bench console")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="of these parts")
    parser.add_argument("--rounds", type=int, default=3, help="each page is opened so often")
    parser.add_argument(
        "--rates",
        type=int,
        nargs="*",
        default=[20, 50, 100, 200, 400, 800],
        help="points a second",
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of each rate")
    parser.add_argument("--minutes", type=float, default=60.0, help="of the look at memory")
    parser.add_argument("--rate", type=int, default=20, help="points a second meanwhile")
    options = parser.parse_args(arguments)
    with ground.platform(settings) as found, _browser() as browser:
        url, token = api_url(found), ground.token(found)
        device = Device(found, token)
        parts: dict[str, Callable[[], None]] = {
            VISIT: lambda: first_visit.told(
                browser, url, (ground.token(found, "new"), ground.token(found, "newer"))
            ),
            PAGES: lambda: wire.measure(browser, url, token, device, options.rounds),
            POINTS: lambda: points.measure(
                *(browser, url, token, device, options.rates, options.seconds)
            ),
            MEMORY: lambda: memory.measure(
                *(browser, url, token, device, options.rate, options.minutes)
            ),
        }
        for name, measure in parts.items():
            if name in options.only:
                measure()
                _load()


def _load() -> None:
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)


@contextmanager
def _browser() -> Iterator[Browser]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise SetupError(
            "this benchmark drives a browser with playwright: pip install 'servioticy[test]'"
        ) from error
    program, environment = chromium()
    flags = [*FLAGS, "--enable-precise-memory-info"]
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=str(program), args=flags, env=dict(environment)
        )
        try:
            yield found
        finally:
            found.close()
