"""The console's other pages in a real browser, on the real platform."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from pathlib import Path

from browsing import Person, browser, fresh, visitor
from cellars import Cellar, cellar
from flaky_receiver import FlakyReceiver
from operator_folders import write
from playwright.sync_api import Browser
from running_platform import RunningPlatform, until

from operators import archives

__all__ = ["browser", "cellar", "fresh", "visitor"]

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
HOT = """from servioticy_operator import serve


def hot(event, state):
    yield {"v": event.value("v")}


"""


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
    visitor.sees("ms after it was accepted")
    assert visitor.page.locator(".node.derived text", has_text=re.compile(r"\+[\d,]+ ms")).count()
    visitor.look("trace")

    visitor.open(f"/console/streams/{cellar.device}/air/trace?timestamp={cellar.newest + 1}")
    visitor.sees("The code threw an error.")
    visitor.page.locator(".node.wrong").wait_for()
    visitor.look("trace-wrong")


def test_a_delivery_is_watched_and_its_receiver_tried(visitor: Person, cellar: Cellar) -> None:
    with FlakyReceiver() as receiver:
        where = f"http://127.0.0.1:{receiver.port}/in"
        visitor.sign_in(cellar.token)
        visitor.open(f"/console/streams/{cellar.device}/air")
        visitor.write("Have each update sent to a URL", where)
        visitor.press("Subscribe")
        visitor.sees("It is shown only now.")
        visitor.look("delivery-made")
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


def test_what_a_receiver_has_refused_is_delivered_once_more(
    visitor: Person, cellar: Cellar
) -> None:
    """Its trouble is seen, then what is dead and why; a button has it sent again, and it comes."""
    with FlakyReceiver() as receiver:
        receiver.is_away, receiver.away = True, HTTPStatus.UNPROCESSABLE_ENTITY
        where = f"http://127.0.0.1:{receiver.port}/in"
        id_ = cellar.subscribe({"callback": "http", "destination": where})
        cellar.send(cellar.newest, 20)
        visitor.sign_in(cellar.token)
        until(lambda: "trouble" in cellar.ask("GET", f"/subscriptions/{id_}"), 60)
        visitor.press("Deliveries", role="link")
        visitor.page.get_by_role("row", name=where).get_by_role("link").focus()
        visitor.page.keyboard.press("Enter")
        visitor.sees("the last was answered 422")
        path = f"/subscriptions/{id_}/dead-deliveries"
        until(lambda: bool(cellar.ask("GET", path)["deadDeliveries"]), 120)
        visitor.page.reload()
        visitor.page.get_by_role("row", name="422 Unprocessable").wait_for()
        visitor.look("delivery-dead")

        receiver.is_away = False
        visitor.press("Deliver all of them once more")
        visitor.sees("What had failed is delivered once more.")
        until(lambda: receiver.first_times("/in") == [cellar.newest], 60)
        until(lambda: not cellar.ask("GET", path)["deadDeliveries"], 60)
        visitor.page.reload()
        visitor.page.get_by_role("heading", name="What was refused for good").wait_for()
        assert visitor.page.get_by_role("row", name="422").count() == 0
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
    visitor.write("Id of the device", cellar.device, role="combobox")
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
    visitor.write("Id of the device", cellar.derived, role="combobox")
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


def test_a_workflow_is_made_sent_to_and_watched(visitor: Person, fresh: str) -> None:
    """As it is offered; what comes out, and what has died, appears without a reload."""
    visitor.sign_in(fresh)
    visitor.press("Workflows", role="link")
    visitor.sees("There is no workflow yet")
    visitor.press("New workflow", role="link")
    text = visitor.page.get_by_role("textbox", name="Document", exact=True)
    text.wait_for()
    visitor.look("workflow-new")
    whole = text.input_value()
    visitor.find("textbox", "Document")
    visitor.page.keyboard.press("Control+A")
    wrong = whole.replace("return {", "throw new Error('too hot'); return {")
    visitor.page.keyboard.insert_text(
        wrong.replace('"classify": {', '"classify": {"attempts": 1,')
    )
    visitor.press("Make it")
    visitor.sees("The workflow is made")

    atoms = json.dumps([{"celsius": 35}, {"celsius": -273.2}])
    visitor.write("Atoms (a JSON object, or a list of them)", atoms)
    visitor.press("Send")
    visitor.sees("The atoms were accepted.")
    visitor.page.locator("[data-part=dead]", has_text="too hot").wait_for()
    visitor.page.locator(".node.wrong[data-box=classify]").wait_for()
    visitor.press("Document", role="link")
    visitor.find("textbox", "Document")
    visitor.page.keyboard.press("Control+A")
    visitor.page.keyboard.insert_text(whole)
    visitor.press("Save as a new version")
    visitor.sees("The new version is in force")
    visitor.write("Atoms (a JSON object, or a list of them)", atoms)
    visitor.press("Send")
    visitor.page.locator("[data-part=results] code", has_text='"hot":true').wait_for()
    visitor.look("workflow")
    visitor.press("Put in force again version 1")
    visitor.sees("The version is in force again")
    visitor.press("Workflows", role="link")
    visitor.page.get_by_role("row", name="Readings").wait_for()
    visitor.look("workflows")


def test_an_operator_is_watched_and_computes_by_another_version(
    visitor: Person, cellar: Cellar, tmp_path: Path
) -> None:
    visitor.sign_in(cellar.token)
    _push_from_the_browser(visitor, tmp_path)
    by = {"name": "filter", "version": 1, "inputs": ["a"]}
    value = {"channels": {"v": {"type": "number"}}}
    streams = {"a": value, "hot": {"operator": by, **value}}
    id_ = cellar.ask("POST", "/", {"version": "0.2.0", "name": "Oven", "streams": streams})["id"]
    update = {"channels": {"v": {"current-value": 1}}, "lastUpdate": cellar.newest}
    cellar.ask("PUT", f"/{id_}/streams/a", update)

    visitor.press("Operators", role="link")
    visitor.press("filter", role="link")
    visitor.sees("Oven \u203a hot")
    visitor.look("operator")
    until(lambda: bool(cellar.ask("GET", "/operators/filter/1")["runs"]), 60)
    visitor.press("Compute by it Oven \u203a hot")
    visitor.sees("The stream is computed by this version from now on.")
    visitor.press("Operators", role="link")
    visitor.sees("Programs of your own, in any language")
    visitor.look("operators")
    visitor.open("/console/operators/filter/1")
    visitor.sees("How it runs")
    visitor.look("operator-version")
    visitor.open(f"/console/streams/{id_}/hot")
    visitor.press("version 2", role="link")
    visitor.sees("256MiB at most")


def _push_from_the_browser(visitor: Person, folder: Path) -> None:
    """A folder that is wrong, the same mended, and an archive."""
    bad, good, other = [
        write(folder / name, f"{HOT}print({name!r}, flush=True)\nserve(hot)\n", name="filter")
        for name in ("bad", "good", "other")
    ]
    (bad / "operator.json").write_text(
        '{"name": "filter",\n "command": ["python3", "main.py"],\n "limits": {"memory": "1MiB"}}'
    )
    (good / ".secret").write_text("not to be pushed")
    archive = folder / "other.tar.gz"
    archive.write_bytes(archives.pack(other))
    visitor.press("Operators", role="link")
    visitor.page.set_input_files("#archive", bad / "main.py")
    visitor.sees("it is no tar that is compressed with gzip")
    visitor.page.set_input_files("#folder", bad)
    visitor.sees("filter: 3 files")
    visitor.press("Push it")
    visitor.sees("16MiB to 2048MiB (line 3, column 13)")
    visitor.look("operator-refused")
    # The browser says itself that it was a 400.
    visitor.wrong = [each for each in visitor.wrong if "400" not in each]
    visitor.page.set_input_files("#folder", good)
    visitor.sees("filter: 3 files")
    (good / "main.py").rename(folder / "aside")
    visitor.press("Push it")
    visitor.sees("A file has changed or cannot be read any more.")
    (folder / "aside").rename(good / "main.py")
    visitor.page.set_input_files("#folder", good)
    visitor.sees("filter: 3 files")
    visitor.press("Push it")
    visitor.sees("The version is pushed.")
    for said in ("The version is pushed.", "These are the files of the newest version"):
        visitor.press("Push another version", role="link")
        visitor.page.set_input_files("#archive", archive)
        visitor.sees("filter: ")
        visitor.press("Push it")
        visitor.sees(said)
    for version in ("1", "2"):
        visitor.page.get_by_role("row", name=f"version {version}").wait_for()


def test_a_stream_is_measured_by_the_minute(visitor: Person, cellar: Cellar) -> None:
    visitor.sign_in(cellar.token)
    visitor.open(f"/console/streams/{cellar.derived}/fahrenheit")
    visitor.press("Measure it by the minute", role="link")
    visitor.press("Measure it")
    visitor.sees("From now on the stream is measured")
    cellar.send(cellar.newest, 20)
    path = "/monitoring/aspects"
    (aspect,) = cellar.ask("GET", path)["data"]
    until(lambda: bool(cellar.ask("GET", f"{path}/{aspect['id']}/series")["data"]), 60)
    visitor.page.reload()
    visitor.page.get_by_role("row", name="emitted 1").wait_for()
    visitor.look("measured")
    visitor.press("Measure it no more")
    visitor.sees("Nothing is measured.")


def test_ten_thousand_streams_are_boxes_that_open(visitor: Person, cellar: Cellar) -> None:
    """Beyond 500 boxes streams of a device are one; a name finds one of all."""
    for number in range(10):
        cellar.create(f"Hall {number}", 1_000)
    cellar.create_alarms()
    cellar.send(cellar.newest, 45)
    visitor.sign_in(cellar.token)
    visitor.open("/console/topology")
    visitor.sees("There are 10,005 streams here")
    assert visitor.page.locator(".node").count() == 13
    alarms = "Open Alarms: 3 streams; 1 ended in an update, 1 in nothing, 1 went wrong"
    visitor.page.get_by_role("link", name=alarms, exact=True).wait_for()
    assert visitor.page.locator(".node.folded.wrong").count() == 1
    bar = visitor.page.locator(".node.folded.wrong .inside")
    assert all(each.is_visible() for each in bar.all())
    (width,) = {float(each.get_attribute("width") or 0) for each in bar.all()}
    assert width > 0
    visitor.look("topology-folded")

    visitor.press("Open Hall 3: 1,000 streams", role="link")
    visitor.sees("Close all boxes")
    assert visitor.page.locator(".node").count() == 500
    visitor.sees("Not all of it is shown: find fewer by name.")
    visitor.press("Close all boxes", role="link")
    visitor.write("Find by stream", "s777", role="searchbox")
    visitor.press("Find")
    visitor.sees("10 streams on this page have")
    visitor.write("Find by name", "Hall 3", role="searchbox")
    visitor.press("Find")
    visitor.press("Hall 3 \u203a s777", role="link")
    visitor.page.get_by_role("heading", name="s777").wait_for()
    visitor.open("/console/devices?name=Hall")
    visitor.press("Hall 9", role="link")
    visitor.sees("Page 1 of 20, 1,000 streams")
    visitor.page.locator("summary", has_text="s42").focus()
    visitor.page.keyboard.press("Enter")
    visitor.press("Send to s42")
    visitor.sees("The test update was accepted.")
    visitor.look("device-of-a-thousand")


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
    until(lambda: _all_are_ready(visitor), 60)
    cellar.send(cellar.newest, 20)
    until(lambda: cellar.derived in _slowest(platform), 60)
    visitor.open("/console/platform")
    visitor.page.get_by_role("row", name=f"fahrenheit {cellar.derived}").wait_for()
    visitor.press("By what a computation takes", role="link")
    visitor.page.get_by_role("row", name=f"fahrenheit {cellar.derived}").wait_for()
    visitor.look("platform")
    visitor.press("Partitions", role="link")
    for partition in ("0", "1"):
        visitor.page.get_by_role("row", name=f"{partition} 0 0").wait_for()
    visitor.look("partitions")


def _all_are_ready(visitor: Person) -> bool:
    """On a busy machine one or the other is late to say so."""
    visitor.open("/console/platform")
    visitor.page.get_by_role("row", name="pipeline").first.wait_for()
    return visitor.page.get_by_text("not ready").count() == 0


def test_who_operates_the_platform_sees_what_is_woven(
    visitor: Person, platform: RunningPlatform, cellar: Cellar
) -> None:
    """And what was measured of a trace; so does the tenant whose update it was."""
    aspects = platform.data / "aspects.toml"
    until(lambda: not _woven(platform), 60)  # others have woven before
    visitor.sign_in(platform.token)
    visitor.open("/console/platform")
    visitor.press("What is woven", role="link")
    visitor.sees("Nothing is woven.")
    aspects.write_text(
        '[[aspect]]\npointcut = "api.request"\n[[aspect]]\npointcut = "ingest.take*"\n'
    )
    try:
        until(lambda: bool(_woven(platform)), 60)
        visitor.page.reload()
        visitor.page.get_by_role("row", name="api.request in").wait_for()
        visitor.look("woven")
        _send_traced(platform, cellar)
        visitor.press("Traces", role="link")
        visitor.page.get_by_role("row", name=TRACE).wait_for()
        visitor.look("traces")
        visitor.write("Id of a trace", TRACE, role="searchbox")
        visitor.press("Look")
        visitor.page.get_by_role("row", name="ingest.take").first.wait_for()
        visitor.look("measured-trace")
    finally:
        aspects.unlink()
        until(lambda: not _woven(platform), 60)
    visitor.sign_out()
    visitor.sign_in(cellar.token)
    visitor.open(f"/console/streams/{cellar.device}/air/trace?timestamp={cellar.newest}")
    visitor.page.get_by_role("row", name="ingest.take").first.wait_for()
    visitor.look("trace-measured")


def _send_traced(platform: RunningPlatform, cellar: Cellar) -> None:
    """Send an update that belongs to a trace, until something is measured of that."""
    headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    body = {"channels": {"temperature": {"current-value": 20}}, "lastUpdate": cellar.newest}
    path = f"/{cellar.device}/streams/air"

    def is_measured() -> bool:
        status, _, told = platform.request("PUT", path, body, cellar.token, headers)
        assert status < 300, told
        status, _, told = platform.request("GET", f"/platform/traces/{TRACE}")
        assert status == 200, told
        return bool(json.loads(told)["steps"])

    until(is_measured, 60)


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
