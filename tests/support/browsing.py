"""A person at the console: a real browser, used by labels and by the keyboard alone."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chromium import FLAGS, chromium
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from running_platform import RunningPlatform

from servioticy.embedded import javascript
from servioticy.settings import load

PICTURES = Path(os.environ.get("SERVIOTICY_TEST_PICTURES", "build/console"))
"""Where screenshots go: to be looked at."""
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 360, "height": 780}
MILLISECONDS = 120_000
PRESSES = 80
"""Of Tab, until somebody gives up looking for a thing."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium, for all tests of a module: while it runs nobody else can run a loop."""
    program, environment = chromium()
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=str(program), args=list(FLAGS), env=dict(environment)
        )
        yield found
        found.close()


class Person:
    """Who uses a page by what it says, without a mouse; nothing may go wrong unseen."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.wrong: list[str] = []
        page.set_default_timeout(MILLISECONDS)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", self._heard)
        page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    def _asked(self, request: Any) -> None:
        if not re.match(r"(https?|wss?)://127\.0\.0\.1:|data:|blob:", request.url):
            self.wrong.append(f"asked another host: {request.url}")

    def open(self, path: str) -> None:
        self.page.goto(self.url + path)

    def find(self, role: Any, name: str) -> None:
        """Press Tab until what has this role and name has the focus."""
        wanted = self.page.get_by_role(role, name=name, exact=True).first
        wanted.wait_for()
        for _ in range(PRESSES):
            if wanted.evaluate("each => each === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"no Tab leads to the {role} {name!r}")

    def write(self, label: str, text: str, role: Any = "textbox") -> None:
        """Write into a field, in the place of what it had."""
        self.find(role, label)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)

    def press(self, name: str, role: Any = "button", key: str = "Enter") -> None:
        """Find it with the keyboard, and press it."""
        self.find(role, name)
        self.page.keyboard.press(key)

    def sees(self, text: str) -> None:
        """Wait until the page says so."""
        self.page.get_by_text(text).first.wait_for()

    def sign_in(self, token: str) -> None:
        self.open("/console/")
        self.page.get_by_label("Token").wait_for()
        self.page.keyboard.type(token)  # the field has the focus
        self.page.keyboard.press("Enter")
        self.page.get_by_role("button", name="Sign out").wait_for()

    def sign_out(self) -> None:
        """And be where one signs in: another page opened before would end that answer."""
        self.press("Sign out")
        self.page.get_by_label("Token").wait_for()

    def barriers(self, rules: list[str] | None = None) -> list[str]:
        """What axe finds wrong with the page as it is now; by these rules, or by all."""
        if not self.page.evaluate("'axe' in window"):
            # Not by a script element, which the page's policy would refuse.
            axe = (javascript.folder(load()) / javascript.AXE).read_text("utf-8")
            self.page.evaluate(f"() => {{ {axe}; window.axe = axe }}")
        found = self.page.evaluate("rules => axe.run(rules ? {runOnly: rules} : {})", rules)
        return [
            f"{each['id']}: {each['help']}: {node['html'][:200]}"
            for each in found["violations"]
            for node in each["nodes"]
        ]

    def look(self, name: str) -> None:
        """Take pictures, wide and narrow, dark and light, and look for barriers in them."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        found = set()
        for size, viewport in (("wide", WIDE), ("narrow", NARROW)):
            self.page.set_viewport_size(viewport)
            width = self.page.evaluate("document.documentElement.scrollWidth")
            assert width <= viewport["width"], f"{name} is {width} pixels wide"
            for scheme in ("light", "dark"):
                self.page.emulate_media(color_scheme=scheme)
                if scheme == "light":
                    found |= set(self.barriers())
                elif size == "wide":  # in the dark colours differ, and nothing else
                    found |= set(self.barriers(["color-contrast"]))
                file = PICTURES / f"{name}-{size}-{scheme}.png"
                self.page.screenshot(path=file, full_page=True)
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size(WIDE)
        assert not found, "\n".join(sorted(found))


@contextmanager
def person(browser: Browser, port: int) -> Iterator[Person]:
    """Somebody with a browser that knows nothing yet."""
    context: BrowserContext = browser.new_context(
        viewport=WIDE, permissions=["clipboard-read", "clipboard-write"], reduced_motion="reduce"
    )
    found = Person(context.new_page(), f"http://127.0.0.1:{port}")
    try:
        yield found
    finally:
        context.close()
    assert found.wrong == [], found.wrong


@pytest.fixture
def visitor(browser: Browser, platform: RunningPlatform) -> Iterator[Person]:
    with person(browser, platform.api_port) as found:
        yield found


@pytest.fixture
def fresh(platform: RunningPlatform) -> str:
    """The token of a tenant that has nothing yet."""
    return platform.command("tenant", "create", f"console-{uuid.uuid4().hex}").stdout.strip()
