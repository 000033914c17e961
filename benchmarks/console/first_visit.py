"""How long the first visit takes a machine: from signing in to a value that is derived live."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

from benchmarks.console.looking import looking

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SECONDS = 60.0
"""So long the command that is shown may take."""


def measure(browser: Browser, url: str, token: str) -> None:
    """Go through its three steps for a tenant that has nothing, and print the seconds."""
    began = time.monotonic()
    with looking(browser, url, token) as one:
        page = one.page
        page.goto(f"{url}/console/start")
        page.get_by_label("What do you call it?").fill("Kitchen")
        page.get_by_role("button", name="Add the device").click()
        page.get_by_role("button", name="Derive this").click()
        page.get_by_role("button", name="Show the command").click()
        command = page.locator("#curl").inner_text()
        shown = time.monotonic()
        subprocess.run(
            ["/bin/sh", "-c", command], check=True, capture_output=True, timeout=SECONDS
        )
        page.get_by_text("It works").wait_for()
    ended = time.monotonic()
    print(
        f"first visit: {shown - began:.1f} s to the command, {ended - shown:.1f} s more to the"
        " derived value",
        flush=True,
    )
