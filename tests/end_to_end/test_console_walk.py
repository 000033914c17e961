"""The console's pages one after the other, as a person with a keyboard comes to them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from browsing import NARROW, Person, browser, fresh, visitor
from cellars import Cellar, cellar
from running_platform import RunningPlatform, until

from api.console.workflow_editor import FIRST

__all__ = ["browser", "cellar", "fresh", "visitor"]

SECONDS = 300.0
MOST_PAGES = 60
PRESSES = 150
ID = re.compile(r"[0-9a-f]{20,}|[0-9]+")
MARK = """() => {
  window.reached = new Set();
  document.addEventListener("focusin", (event) => { window.reached.add(event.target); });
  const all = "a[href], button, input, select, textarea, summary";
  // Of radio buttons of one name the keyboard comes to one, and arrows to the others.
  const waits = (each) => each.checkVisibility() && !each.disabled && each.type !== "hidden"
    && (each.type !== "radio" || each.checked);
  window.unreached = () => [...document.querySelectorAll(all)]
    .filter((each) => waits(each) && !window.reached.has(each))
    .map((each) => each.outerHTML.slice(0, 120));
}"""


def test_every_page_that_a_tenant_comes_to_is_reached_and_used_by_keyboard(
    visitor: Person, cellar: Cellar
) -> None:
    """Each is without barriers, fits a phone, and a press of Tab leads to all that it has."""
    cellar.send(cellar.newest, 20)
    until(lambda: sum(cellar.status().values()) >= 1, SECONDS)
    _have_one_of_each(cellar)
    visitor.sign_in(cellar.token)
    seen = _walked(visitor, "/console/devices")
    assert {
        *("devices", "devices/*", "devices/*/document", "devices/new", "streams/*/*"),
        *("streams/*/*/trace", "topology", "workflows", "workflows/new", "operators"),
        *("deliveries", "deliveries/*", "jobs", "usage", "aspects", "grants", "members"),
        *("tokens", "audit", "windows", "workflows/*", "workflows/*/document", "jobs/*"),
        *("aspects/*", "devices/*/versions/*"),
    } <= seen


def test_so_is_every_page_of_who_operates_the_platform(
    visitor: Person, platform: RunningPlatform
) -> None:
    visitor.sign_in(platform.token)

    # Whether there is a trace depends on what was woven before.
    assert _walked(visitor, "/console/platform") - {"platform/traces/*"} == {
        *("platform", "platform/partitions", "platform/monitoring", "platform/applications"),
        "platform/rebalance",
        "platform/traces",
    }


def _have_one_of_each(cellar: Cellar) -> None:
    """What pages are of that a cellar does not have by itself."""
    stream = f"/{cellar.derived}/streams/fahrenheit"
    cellar.ask("POST", "/workflows", FIRST)
    cellar.ask("POST", f"{stream}/backfill", {"from": cellar.newest, "to": cellar.newest + 1})
    aspect = {"serviceObject": cellar.derived, "stream": "fahrenheit", "purpose": "Cellar"}
    cellar.ask("POST", "/monitoring/aspects", aspect)
    for each in (cellar.device, cellar.derived):
        document = cellar.ask("GET", f"/{each}")
        cellar.ask("PUT", f"/{each}", document | {"description": "another version"})


def _walked(visitor: Person, first: str) -> set[str]:
    """Return the kinds of pages that are reached from there; none has anything wrong."""
    visitor.page.set_viewport_size(NARROW)
    seen = set()
    for path in _found(visitor, first):
        seen.add(_kind(path))
        assert visitor.barriers() == [], path
        width = visitor.page.evaluate("document.documentElement.scrollWidth")
        assert width <= NARROW["width"], f"{path} is {width} pixels wide"
        assert _out_of_reach(visitor) == [], path
    return seen


def _found(visitor: Person, first: str) -> Iterator[str]:
    """Open a page of each kind that links lead to, one after the other.

    From the platform's pages on those alone: all others are a tenant's.
    """
    waiting, known = deque([first]), {_kind(first)}
    below = "/console/platform" if first == "/console/platform" else "/console/"
    for _ in range(MOST_PAGES):
        if not waiting:
            return
        path = waiting.popleft()
        visitor.open(path)
        visitor.page.locator("h1").wait_for()
        yield path
        links = visitor.page.eval_on_selector_all(
            "a[href]:not([download])", "all => all.map((each) => each.getAttribute('href'))"
        )
        for link in links:
            is_page = link.startswith(below) and not link.startswith("/console/api/")
            if is_page and _kind(link) not in known:
                known.add(_kind(link))
                waiting.append(link.partition("#")[0])
    raise AssertionError(f"there are more kinds of pages: {waiting}")


def _kind(path: str) -> str:
    """What is the same of all pages of a kind: ids, and names of streams, are any."""
    names = path.partition("?")[0].partition("#")[0].removeprefix("/console/").split("/")
    kind = [ID.sub("*", each) for each in names]
    if names[0] == "streams" and len(kind) > 2:
        kind[2] = "*"
    return "/".join(kind)


def _out_of_reach(visitor: Person) -> list[str]:
    """What the page has that no Tab leads to."""
    visitor.page.evaluate(MARK)
    found: list[str] = []
    for _ in range(PRESSES):
        visitor.page.keyboard.press("Tab")
        found = visitor.page.evaluate("window.unreached()")
        if not found:
            break
    return found
