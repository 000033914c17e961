"""The console's other pages in a real browser, on the real platform."""

from __future__ import annotations

import json

from browsing import Person, browser, fresh, visitor
from cellars import Cellar, cellar
from flaky_receiver import FlakyReceiver
from playwright.sync_api import Browser
from running_platform import RunningPlatform, until

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


def test_a_delivery_is_watched_and_its_receiver_tried(visitor: Person, cellar: Cellar) -> None:
    with FlakyReceiver() as receiver:
        where = f"http://127.0.0.1:{receiver.port}/in"
        cellar.subscribe({"callback": "http", "destination": where})
        visitor.sign_in(cellar.token)
        visitor.press("Deliveries", role="link")
        visitor.sees(where)
        visitor.look("deliveries")
        visitor.page.get_by_role("row", name=where).get_by_role("link").focus()
        visitor.page.keyboard.press("Enter")
        visitor.press("Send a test")
        visitor.sees("200 OK")
        visitor.look("delivery")
        visitor.press("End the subscription")
        visitor.sees("The subscription has ended.")


def test_what_is_used_and_how_much_may_be(visitor: Person, cellar: Cellar) -> None:
    cellar.send(cellar.newest, 20)
    until(lambda: sum(cellar.status().values()) >= 1, 30)
    visitor.sign_in(cellar.token)
    visitor.press("Usage", role="link")
    visitor.sees("Used in the last day")
    visitor.find("combobox", "By")
    visitor.page.keyboard.type("Serv")
    visitor.press("Show")
    visitor.page.wait_for_url("**by=serviceObject*")
    visitor.sees("stored-bytes")
    visitor.look("usage")


def test_who_may_what_is_seen_and_changed(visitor: Person, cellar: Cellar) -> None:
    visitor.sign_in(cellar.token)
    visitor.press("Access", role="link")
    visitor.write("Id of the device", cellar.device)
    visitor.write("Stream (empty: all)", "air")
    visitor.press("Grant it")
    visitor.sees("to everyone")
    visitor.look("grants")
    visitor.press("Revoke Cellar \u203a air")
    visitor.sees("Nothing is granted")

    visitor.press("Tokens", role="link")
    visitor.write("Name", "display")
    visitor.find("checkbox", "read")
    visitor.page.keyboard.press("Space")
    visitor.press("Make it")
    visitor.sees("It is shown only now.")
    visitor.look("tokens")
    visitor.press("Members", role="link")
    visitor.sees("No person acts for this tenant")
    visitor.look("members")
    visitor.press("Audit log", role="link")
    visitor.page.get_by_text("revoked").first.wait_for()
    visitor.look("audit")


def test_a_stream_is_filled_from_history_and_followed(visitor: Person, cellar: Cellar) -> None:
    """Ordered by its labels, followed as it goes, and seen when it is done."""
    cellar.send(cellar.newest, 20)
    until(lambda: sum(cellar.status().values()) >= 1, 60)
    visitor.sign_in(cellar.token)
    visitor.press("Jobs", role="link")
    visitor.sees("There is no job.")
    visitor.write("Id of the device", cellar.derived)
    visitor.write("Stream", "fahrenheit")
    visitor.write("From (a timestamp or a date)", str(cellar.newest - 1000))
    visitor.write("Up to before (the same)", str(cellar.newest + 1))
    visitor.press("Fill it")
    visitor.page.get_by_role("heading", name="Cellar: in Fahrenheit \u203a fahrenheit").wait_for()
    visitor.page.locator(".badge", has_text="done").wait_for()
    visitor.page.get_by_role("progressbar", name="Done").wait_for()
    visitor.page.get_by_role("link", name="The stream", exact=True).wait_for()
    visitor.look("job")
    visitor.press("Jobs", role="link")
    visitor.page.get_by_role("row", name="fahrenheit backfill done").wait_for()
    visitor.look("jobs")


def test_more_streams_than_can_be_seen_are_boxes_that_open(
    visitor: Person, cellar: Cellar
) -> None:
    for number in range(6):
        cellar.create(f"Hall {number}", 100)
    visitor.sign_in(cellar.token)
    visitor.open("/console/topology")
    visitor.sees("There are 602 streams here")
    assert visitor.page.locator(".node").count() == 8
    visitor.look("topology-folded")

    visitor.press("Open Hall 3: 100 streams", role="link")
    visitor.sees("Close all boxes")
    assert visitor.page.locator(".node").count() == 107
    visitor.page.get_by_role("link", name="s7 Hall 3", exact=True).wait_for()
    visitor.press("Close all boxes", role="link")
    visitor.write("Find by name", "Hall 3", role="searchbox")
    visitor.press("Find")
    visitor.page.get_by_role("link", name="s7 Hall 3", exact=True).wait_for()
    assert visitor.page.locator(".node.folded").count() == 0


def test_a_stream_is_found_and_looked_at(visitor: Person, cellar: Cellar) -> None:
    for number in range(6):
        cellar.create(f"Hall {number}", 100)
    visitor.sign_in(cellar.token)
    visitor.press("Topology", role="link")
    visitor.write("Find by stream", "AHRENHEIT", role="searchbox")
    visitor.press("Find")
    visitor.sees("1 stream on this page has")
    visitor.page.locator(".node.found[data-name=fahrenheit]").wait_for()
    visitor.page.locator(".node[data-name=air]").wait_for()
    assert visitor.page.locator(".node").count() == 2
    visitor.look("topology-found")

    visitor.press("Cellar: in Fahrenheit \u203a fahrenheit", role="link")
    visitor.page.get_by_role("heading", name="fahrenheit derived").wait_for()


def test_a_stream_is_found_without_scripts(browser: Browser, cellar: Cellar) -> None:
    """Of more streams than can be seen, too."""
    for number in range(6):
        cellar.create(f"Hall {number}", 100)
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{cellar.platform.api_port}/console/")
        page.get_by_label("Token").fill(cellar.token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Topology").click()
        page.get_by_label("Find by stream").fill("s")
        page.get_by_role("button", name="Find", exact=True).click()
        page.get_by_text("600 streams on this page have").wait_for()
        assert page.locator(".node.found").count() == 6
        page.get_by_role("link", name="Open Hall 3: 100 of 100 found").click()
        page.get_by_role("link", name="s7 Hall 3", exact=True).click()
        page.get_by_role("heading", name="s7").wait_for()
    finally:
        context.close()


def test_who_operates_the_platform_sees_its_programs_and_the_slowest(
    visitor: Person, platform: RunningPlatform, cellar: Cellar
) -> None:
    visitor.sign_in(platform.token)
    visitor.press("Usage", role="link")
    visitor.press("The whole platform", role="link")
    visitor.page.get_by_role("row", name="pipeline ready").wait_for()
    for partition in ("0", "1"):
        visitor.page.get_by_role("row", name=f"{partition} 0 0").wait_for()
    assert visitor.page.get_by_text("not ready").count() == 0
    cellar.send(cellar.newest, 20)
    until(lambda: cellar.derived in _slowest(platform), 60)
    visitor.open("/console/platform")
    visitor.page.get_by_role("row", name=f"fahrenheit {cellar.derived}").wait_for()
    visitor.press("By what a computation takes", role="link")
    visitor.page.get_by_role("row", name=f"fahrenheit {cellar.derived}").wait_for()
    visitor.look("platform")


def test_who_operates_the_platform_sees_what_is_woven(
    visitor: Person, platform: RunningPlatform
) -> None:
    aspects = platform.data / "aspects.toml"
    until(lambda: not _woven(platform), 60)  # others have woven before
    visitor.sign_in(platform.token)
    visitor.open("/console/platform")
    visitor.press("What is woven", role="link")
    visitor.sees("Nothing is woven.")
    aspects.write_text('[[aspect]]\npointcut = "api.request"\n')
    try:
        until(lambda: bool(_woven(platform)), 60)
        visitor.page.reload()
        visitor.page.get_by_role("row", name="api.request in").wait_for()
        visitor.look("woven")
    finally:
        aspects.unlink()
        until(lambda: not _woven(platform), 60)


def _woven(platform: RunningPlatform) -> int:
    """Processes that have anything woven."""
    status, _, body = platform.request("GET", "/platform/monitoring")
    assert status == 200, body
    return sum(sum(each["woven"].values()) for each in json.loads(body)["processes"])


def _slowest(platform: RunningPlatform) -> list[str]:
    """Service Objects whose code was metered; here they are few."""
    status, _, body = platform.request("GET", "/platform/slowest")
    assert status == 200, body
    return [each["serviceObject"] for each in json.loads(body)["streams"]]


def test_nobody_else_does(visitor: Person, fresh: str) -> None:
    visitor.sign_in(fresh)
    visitor.open("/console/usage")
    visitor.sees("Used in the last day")
    assert visitor.page.get_by_text("The whole platform").count() == 0
    visitor.open("/console/platform")
    visitor.sees("This did not work")
    # The browser says itself that the page was a 403.
    visitor.wrong = [each for each in visitor.wrong if "403" not in each]
