"""The console's other pages in a real browser, on the real platform."""

from __future__ import annotations

from browsing import Person, browser, fresh, visitor
from cellars import Cellar, cellar
from running_platform import until

__all__ = ["browser", "cellar", "fresh", "visitor"]


def test_an_update_leads_to_what_became_of_it(visitor: Person, cellar: Cellar) -> None:
    cellar.send(cellar.newest, 20)
    cellar.send(cellar.newest + 1, 45)  # the code throws an error of this
    cellar.send(cellar.newest + 2, 21)
    until(lambda: sum(cellar.status().values()) >= 3, 30)
    visitor.sign_in(cellar.token)
    visitor.open(f"/console/streams/{cellar.device}/air")
    visitor.page.locator("#rows tr").nth(2).wait_for()
    newest = visitor.page.locator("#rows a").first
    name = newest.inner_text()
    visitor.find("link", name)
    visitor.page.keyboard.press("Enter")

    visitor.sees("What became of one update")
    visitor.sees("woken by Cellar")
    visitor.sees("69.8")
    visitor.look("trace")

    visitor.open(f"/console/streams/{cellar.device}/air/trace?timestamp={cellar.newest + 1}")
    visitor.sees("The code threw an error.")
    visitor.page.locator(".node.wrong").wait_for()
    visitor.look("trace-wrong")
