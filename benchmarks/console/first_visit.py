"""How long the first visit takes: from signing in to a value that is derived live.

A machine goes through it as fast as pages come; a person reads each page and thinks before a
choice, by the times of Card, Moran and Newell's keystroke-level model (1980) and of Brysbaert's
review of reading (2019: 238 words a minute).
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.console.looking import looking

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

SECONDS = 60.0
"""So long the command that is shown may take."""
WORDS = "main => main.innerText.split(/\\s+/).filter((each) => /[a-z]{2}/i.test(each)).length"


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast somebody is, in seconds."""

    word: float
    """to read one"""
    key: float
    """to press one"""
    choice: float
    """to think, and to point at what is pressed"""

    def reads(self, page: Page) -> None:
        """Read all that a page says, commands too."""
        words = page.locator("main").evaluate(WORDS)
        page.wait_for_timeout(1_000 * self.word * words)

    def presses(self, button: Locator) -> None:
        """Choose a button, and press it."""
        button.page.wait_for_timeout(1_000 * self.choice)
        button.click()

    def runs(self, page: Page) -> None:
        """Take a command to a shell: two places to point at, and four keys."""
        page.wait_for_timeout(1_000 * (2 * self.choice + 4 * self.key))


MACHINE = Pace(0.0, 0.0, 0.0)
PERSON = Pace(60 / 238, 0.28, 1.35 + 1.1)


def measure(browser: Browser, url: str, token: str, pace: Pace) -> tuple[float, float]:
    """Go through its three steps for a tenant that has nothing.

    Returns the seconds to the command, and those from there to the derived value.
    """
    began = time.monotonic()
    with looking(browser, url, token) as one:
        page = one.page
        page.goto(f"{url}/console/start")
        pace.reads(page)
        page.get_by_label("What do you call it?").press_sequentially(
            "Kitchen", delay=1_000 * pace.key
        )
        pace.presses(page.get_by_role("button", name="Add the device"))
        page.get_by_role("heading", name="What shall be made of it?").wait_for()
        pace.reads(page)
        pace.presses(page.get_by_role("button", name="Derive this"))
        page.get_by_role("heading", name="Send a value").wait_for()
        pace.reads(page)
        pace.presses(page.get_by_role("button", name="Show the command"))
        command = page.locator("#curl").inner_text()
        shown = time.monotonic()
        pace.reads(page)
        pace.runs(page)
        subprocess.run(
            ["/bin/sh", "-c", command], check=True, capture_output=True, timeout=SECONDS
        )
        page.get_by_text("It works").wait_for()
    return shown - began, time.monotonic() - shown


def told(browser: Browser, url: str, tokens: tuple[str, str]) -> None:
    """Print how long a machine, and a person, takes; each for a tenant of its own."""
    for who, pace, token in zip(("machine", "person"), (MACHINE, PERSON), tokens, strict=True):
        command, value = measure(browser, url, token, pace)
        print(
            f"first visit, {who}: {command:.1f} s to the command, {value:.1f} s more to the"
            " derived value",
            flush=True,
        )
