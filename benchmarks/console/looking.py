"""A page of the console in a browser: what it has painted, heard and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, CDPSession, Page

WIDTH, HEIGHT = 1280, 900
PATIENCE = 180_000
"""Milliseconds for what has to come, on however busy a machine."""
LOOKS, PAUSE = 100, 100
"""For what is painted last: so many looks, and milliseconds between two."""
WATCHING = """
(() => {
  const seen = window.seen = { largest: 0, heard: 0, frames: 0, longest: 0 };
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) seen.largest = each.startTime;
  }).observe({ type: "largest-contentful-paint", buffered: true });
  const Real = window.WebSocket;
  window.WebSocket = class extends Real {
    constructor(...all) {
      super(...all);
      this.addEventListener("message", ({ data }) => {
        if (data.includes('"update"')) seen.heard += 1;
      });
    }
  };
  let before = 0;
  const frame = (now) => {
    seen.frames += 1;
    if (before) seen.longest = Math.max(seen.longest, now - before);
    before = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})()
"""


class Looking:
    """A page, and the browser's own account of it."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        context.add_init_script(WATCHING)
        context.set_default_timeout(PATIENCE)
        context.set_default_navigation_timeout(PATIENCE)
        self.page: Page = context.new_page()
        self.url = url
        self.session: CDPSession = context.new_cdp_session(self.page)
        self.session.send("Network.enable")
        self.session.send("Performance.enable")
        self.session.on("Network.loadingFinished", self._finished)
        self.bytes, self.requests = 0.0, 0

    def _finished(self, event: Any) -> None:
        self.bytes += event["encodedDataLength"]
        self.requests += 1

    def sign_in(self, token: str) -> None:
        """Sign in, which leads to the devices."""
        self.page.goto(f"{self.url}/console/")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("button", name="Sign out").wait_for()

    def open(self, path: str) -> tuple[float, float]:
        """Open a page; return milliseconds to its first and to its largest paint."""
        self.bytes, self.requests = 0.0, 0
        self.page.goto(self.url + path, wait_until="networkidle")
        first = largest = 0.0
        for _ in range(LOOKS):
            first = self.page.evaluate(
                "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
            )
            largest = self.seen()["largest"]
            if first and largest:
                break
            self.page.wait_for_timeout(PAUSE)
        return first, largest

    def seen(self) -> dict[str, float]:
        """Return what the page has seen so far."""
        found: dict[str, float] = self.page.evaluate("window.seen")
        return found

    def live(self) -> None:
        """Wait until it is live."""
        self.page.get_by_text("live", exact=True).first.wait_for()

    def heap_megabytes(self) -> float:
        """Return the memory of its JavaScript, after a collection."""
        self.session.send("HeapProfiler.collectGarbage")
        return self._metrics()["JSHeapUsedSize"] / 1024 / 1024

    def nodes(self) -> int:
        """Return how many nodes its documents have, those that are left over too."""
        return round(self._metrics()["Nodes"])

    def _metrics(self) -> dict[str, float]:
        told = self.session.send("Performance.getMetrics")["metrics"]
        return {each["name"]: each["value"] for each in told}


@contextmanager
def looking(browser: Browser, url: str, token: str) -> Iterator[Looking]:
    """Somebody who has signed in, in a browser that knew nothing before."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
    try:
        found = Looking(context, url)
        found.sign_in(token)
        yield found
    finally:
        context.close()
