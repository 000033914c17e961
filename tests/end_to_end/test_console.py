"""The console in a real browser, on the real platform: by its labels and the keyboard alone."""

from __future__ import annotations

import json
import subprocess

from browsing import Person, browser, fresh, visitor
from cellars import Cellar, cellar
from running_platform import RunningPlatform

__all__ = ["browser", "cellar", "fresh", "visitor"]


def test_a_person_signs_in_and_out(visitor: Person, platform: RunningPlatform) -> None:
    visitor.open("/console/")
    visitor.look("sign-in")
    visitor.sign_in(platform.token)
    assert visitor.page.evaluate("document.cookie") == ""

    visitor.sign_out()
    visitor.open("/console/devices")
    assert visitor.page.get_by_label("Token").is_visible()


def test_the_first_visit_leads_to_a_live_derived_value(
    visitor: Person, fresh: str, platform: RunningPlatform
) -> None:
    """By visible labels and the keyboard; what is shown is run as it is printed."""
    visitor.sign_in(fresh)
    visitor.sees("Add your first device")
    visitor.look("first-visit-1")
    visitor.write("What do you call it?", "Kitchen")
    visitor.press("Add the device")

    visitor.sees("What shall be made of it?")
    visitor.look("first-visit-2")
    visitor.press("Derive this")

    visitor.press("Show the command")
    visitor.sees("Waiting for the first value.")
    visitor.press("Copy command for a shell")
    visitor.sees("Copied")
    command = visitor.page.evaluate("navigator.clipboard.readText()")
    subprocess.run(["sh", "-c", command], check=True, capture_output=True, timeout=60)

    visitor.sees("It works")
    visitor.look("first-visit-3")
    derived = visitor.page.locator("#derived")
    named = derived.evaluate("each => ({...each.dataset})")
    path = f"/{named['object']}/streams/{named['stream']}/lastUpdate"
    status, _, body = platform.request("GET", path, token=fresh)
    assert status == 200, body
    (update,) = json.loads(body)["data"]
    value = update["channels"][named["channel"]]["current-value"]
    assert float(derived.inner_text()) == value == 21.5 * 1.8 + 32

    visitor.press("to your devices", role="link")
    visitor.sees("Kitchen: in Fahrenheit")
    visitor.look("devices")


def test_a_device_is_made_connected_tried_and_asked(
    visitor: Person, fresh: str, platform: RunningPlatform
) -> None:
    visitor.sign_in(fresh)
    visitor.open("/console/devices")
    visitor.press("Add a device", role="link")
    visitor.sees("Of which template?")
    visitor.look("templates")
    visitor.press("Electricity meter the power that a house takes", role="link")
    visitor.write("Name", "Cellar's meter")
    visitor.press("Add the device")
    visitor.page.get_by_role("heading", name="Cellar's meter").wait_for()

    visitor.write("watts W", "1234.5")
    visitor.press("Send")
    visitor.sees("The test update was accepted.")
    visitor.sees("1234.5")

    visitor.press("Ask for identify")
    visitor.sees("It waits until the device connects.")
    device = visitor.page.url.rsplit("/", 1)[1].partition("?")[0]
    asked = visitor.page.locator("[data-actuation]").get_attribute("data-actuation")
    platform.request(
        "PUT", f"/{device}/actuations/{asked}", "done", fresh, {"Content-Type": "text/plain"}
    )
    visitor.look("device")

    visitor.press("New token")
    visitor.sees("It is shown only now.")
    visitor.look("token")
    commands = visitor.page.locator("pre").all_inner_texts()
    done = subprocess.run(["sh", "-c", commands[1]], capture_output=True, text=True, timeout=60)
    assert '"watts"' in done.stdout, done
    assert commands[2].startswith("mosquitto_pub -h 127.0.0.1 -p")
    visitor.press("Done", role="link")

    visitor.press("Claim code")
    visitor.sees("A claim code for it")
    visitor.look("claim-code")
    commands = visitor.page.locator("pre").all_inner_texts()
    done = subprocess.run(["sh", "-c", commands[1]], capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["id"] == device
    visitor.press("Sign out")


def test_what_is_refused_is_said_and_nothing_is_lost(visitor: Person, fresh: str) -> None:
    visitor.sign_in(fresh)
    visitor.open("/console/devices/no-such-device")
    visitor.sees("This did not work")
    visitor.look("refused")
    # The browser says itself that the page was a 404.
    visitor.wrong = [each for each in visitor.wrong if "404" not in each]


def test_a_stream_is_seen_live_and_its_history_by_zooming(visitor: Person, cellar: Cellar) -> None:
    cellar.send_history()
    visitor.sign_in(cellar.token)
    visitor.press("Cellar", role="link")
    visitor.press("air", role="link")
    visitor.page.get_by_text("live", exact=True).first.wait_for()
    visitor.sees("181 updates.")
    visitor.sees("Cellar: in Fahrenheit")
    visitor.sees("display")

    cellar.send(cellar.newest + 1_000, 33.25)
    visitor.page.locator("[data-now=temperature]", has_text="33.25").wait_for()
    visitor.sees("most 33.25")
    cellar.send(cellar.newest - 500, 1.5)
    visitor.sees("1 came late, or once more (marked).")
    visitor.look("stream")

    visitor.press("All")
    visitor.sees("as mean, least and most of")
    visitor.press("Zoom in")
    visitor.press("Earlier")
    visitor.look("stream-history")
    visitor.press("Live")
    with visitor.page.expect_download() as loaded:
        visitor.press("CSV", role="link")
    text = loaded.value.path().read_text("utf-8")
    assert len(text.splitlines()) == cellar.sent + 1


def test_how_a_derived_stream_is_computed_is_told(visitor: Person, cellar: Cellar) -> None:
    cellar.send_history()
    cellar.send(cellar.newest + 1, 45)
    visitor.sign_in(cellar.token)
    visitor.press("Cellar: in Fahrenheit", role="link")
    visitor.press("fahrenheit", role="link")
    visitor.sees("The code threw an error.")
    visitor.sees("(channel fahrenheit, line 1, column")
    told = cellar.status()
    for verdict, count in told.items():
        visitor.page.locator(f"[data-count={verdict}]", has_text=str(count)).wait_for()
    visitor.look("derived")


def test_results_of_windows_that_are_early_or_revised_say_so(
    visitor: Person, fresh: str, platform: RunningPlatform
) -> None:
    window = {"type": "tumbling", "size": "10s", "idle": "1h", "emit": "updates", "lateness": "1m"}
    channel = {"type": "number", "current-value": "function(air) { return air.sum('v') }"}
    streams = {
        "air": {"channels": {"v": {"type": "number"}}},
        "use": {"window": window, "channels": {"sum": channel}},
    }
    document = {"version": "0.2.0", "name": "Use", "streams": streams}
    status, _, body = platform.request("POST", "/", document, token=fresh)
    assert status == 201, body
    id_ = json.loads(body)["id"]

    def send(at: int, value: int) -> None:
        update = {"channels": {"v": {"current-value": value}}, "lastUpdate": 1_700_000_000 + at}
        status, _, body = platform.request("PUT", f"/{id_}/streams/air", update, token=fresh)
        assert status == 202, body

    visitor.sign_in(fresh)
    visitor.open(f"/console/streams/{id_}/use")
    visitor.page.get_by_text("live", exact=True).first.wait_for()
    rows = visitor.page.locator("#rows tr")
    send(1, 2)
    rows.filter(has_text="early").filter(has_text="2").wait_for()
    send(10, 5)
    rows.nth(1).get_by_role("link").wait_for()
    assert rows.nth(0).get_by_role("link").count() == 0, "it is kept nowhere"
    send(3, 4)
    rows.filter(has_text="revised").filter(has_text="6").wait_for()
    visitor.sees("1 was revised (marked).")
    assert visitor.page.get_by_text("came late").count() == 0
    visitor.page.get_by_role("region", name="Windows that are open").wait_for()
    visitor.look("revised")
    visitor.page.reload()
    visitor.sees("1 was revised (marked).")
    assert rows.count() == 1
    visitor.press("Topology", role="link")
    visitor.page.locator(".node:is(.went, .nothing)[data-name=use]").wait_for()
    visitor.press("Windows", role="link")
    visitor.page.get_by_role("row", name="Use \u203a use tumbling, size 10s").wait_for()
    visitor.look("windows")


def test_the_topology_shows_what_is_made_of_what_and_how_often(
    visitor: Person, cellar: Cellar
) -> None:
    visitor.sign_in(cellar.token)
    visitor.press("Topology", role="link")
    visitor.page.get_by_text("live", exact=True).first.wait_for()
    visitor.page.get_by_role("link", name="air Cellar", exact=True).wait_for()
    for number in range(60):  # a Service Object is watched from some moment on
        cellar.send(cellar.newest + number, 45)  # the code throws an error of this
        if visitor.page.locator(".node.busy").count():
            break
        visitor.page.wait_for_timeout(500)
    visitor.page.locator(".node.busy").wait_for()
    visitor.open("/console/topology")
    visitor.page.locator(".node.wrong[data-name=fahrenheit]").wait_for()
    visitor.look("topology")

    visitor.press("fahrenheit Cellar: in Fahrenheit", role="link")
    visitor.page.get_by_role("heading", name="fahrenheit derived").wait_for()


def test_a_document_is_changed_tried_saved_and_taken_back(visitor: Person, cellar: Cellar) -> None:
    """By labels and the keyboard: what is wrong leads to its place in the text."""
    cellar.send_history()
    visitor.sign_in(cellar.token)
    visitor.press("Cellar: in Fahrenheit", role="link")
    visitor.press("Document", role="link")
    text = visitor.page.get_by_role("textbox", name="Document", exact=True)
    text.wait_for()
    visitor.look("editor")
    whole = text.input_value()
    assert "`\nfunction(device)" in whole

    def has(content: str) -> None:
        visitor.find("textbox", "Document")
        visitor.page.keyboard.press("Control+A")
        visitor.page.keyboard.insert_text(content)

    has(whole.replace("value * 1.8 + 32", "value * 1.8 +"))
    line = whole[: whole.index("value * 1.8")].count("\n") + 1
    visitor.page.locator(f"#checked [data-line='{line}']").wait_for()
    assert visitor.page.locator(".marks i").count() == 1
    visitor.look("editor-checked")
    visitor.press("Try")
    visitor.sees("1 thing to mend")
    visitor.look("editor-wrong")
    visitor.press(f"Go to line {line}")
    place = text.evaluate("each => each.value.slice(0, each.selectionStart).split('\\n').length")
    assert place == line
    # The browser says itself that the page was a 400.
    visitor.wrong = [each for each in visitor.wrong if "400" not in each]

    has(whole.replace("value * 1.8 + 32", "value * 1.8 + 33"))
    visitor.press("Try")
    visitor.sees("of 20 updates would differ")
    visitor.sees("emitted 20")
    visitor.look("editor-tried")

    visitor.find("textbox", "Document")
    visitor.page.keyboard.press("Control+End")
    visitor.write("Name of a stream or channel", "fahrenheit", role="combobox")
    visitor.press("Insert")
    assert text.input_value().endswith("fahrenheit")
    has(whole.replace("value * 1.8 + 32", "value * 1.8 + 33"))
    visitor.press("Save")
    visitor.sees("Version 2 is in force.")

    visitor.press("Compare version 1", role="link")
    visitor.sees("What has changed since then")
    visitor.look("version")
    visitor.press("Put version 1 in force again")
    visitor.sees("Version 1 is in force.")
    assert text.input_value() == whole
    visitor.look("editor-saved")


def test_names_are_completed_while_code_is_written(visitor: Person, cellar: Cellar) -> None:
    """By the keyboard: streams, and channels of other devices too; a key undoes it."""
    visitor.sign_in(cellar.token)
    visitor.open(f"/console/devices/{cellar.derived}/document")
    text = visitor.page.get_by_role("textbox", name="Document", exact=True)
    text.wait_for()
    visitor.sees("Nothing is wrong with this text.")
    visitor.page.locator("#tree summary").focus()
    visitor.page.keyboard.press("Enter")
    visitor.page.get_by_role("region", name="What is computed from what").wait_for()
    options = visitor.page.locator("#completions [role=option]")
    whole = text.input_value()

    def writes(words: str, at: str) -> None:
        text.evaluate("(each, place) => each.setSelectionRange(place, place)", whole.index(at))
        text.focus()
        visitor.page.keyboard.type(words)

    writes("iot.value(device, 't", "var value")
    options.filter(has_text="temperature").wait_for()
    assert options.all_inner_texts() == ["temperature"]
    visitor.look("editor-completing")
    text.focus()
    visitor.page.keyboard.type("e")
    visitor.page.keyboard.press("Enter")
    assert "iot.value(device, 'temperature" in text.input_value()
    visitor.page.keyboard.type("') + dev")
    options.first.wait_for()
    visitor.page.keyboard.press("Escape")
    assert not options.first.is_visible()
    visitor.page.keyboard.press("Control+Space")
    visitor.page.keyboard.press("ArrowUp")
    visitor.page.keyboard.press("ArrowDown")
    assert text.get_attribute("aria-activedescendant") == "completion-0"
    visitor.page.keyboard.press("Tab")
    assert "') + device" in text.input_value()
    visitor.page.keyboard.press("Control+z")
    assert "') + device" not in text.input_value()


def test_a_plot_of_many_points_stays_small_and_leaves_no_time_out(
    visitor: Person, cellar: Cellar
) -> None:
    """What comes while a page is open for hours: two that stand together become one."""
    visitor.sign_in(cellar.token)
    visitor.open(f"/console/streams/{cellar.device}/air")
    found = visitor.page.evaluate("""async () => {
      const [script] = [...document.scripts].filter((each) => each.src.endsWith("/stream.js"));
      const { Points } = await import(script.src.replace("stream.js", "points.js"));
      const points = new Points(100);
      for (let time = 0; time < 10000; time += 1) points.add(time, time % 7);
      points.add(4321.5, 99);
      points.add(9999, -5);
      points.add(9999.5, 3, { isEarly: true });
      points.add(9999.5, 4);
      points.add(10000, 1, { isRevised: true });
      points.add(10001, 1);
      points.remove(10001);
      const sum = (all) => all.reduce((one, each) => one + each, 0);
      const columns = points.columns.map((each) => each.length);
      const { least: low, most: high, values } = points;
      const least = Math.min(...values.map((each, at) => low[at] ?? each));
      const most = Math.max(...values.map((each, at) => high[at] ?? each));
      return {
        columns: new Set(columns).size, count: columns[0], first: points.times[0],
        last: points.times.at(-1), updates: sum(points.counts), least, most,
        mean: sum(points.values.map((each, at) => each * points.counts[at])) / sum(points.counts),
        late: sum(points.late), revised: sum(points.revised), sorted: points.times.every(
          (each, at, all) => at === 0 || each > all[at - 1]),
      };
    }""")
    values = [number % 7 for number in range(9999)] + [99, -5, 4, 1]
    assert found["count"] <= 100
    assert (found["columns"], found["sorted"]) == (1, True)
    assert (found["first"], found["last"]) == (0, 10_000)
    assert (found["least"], found["most"]) == (-5, 99)
    assert found["updates"] == len(values)
    assert abs(found["mean"] - sum(values) / len(values)) < 0.01
    assert (found["late"], found["revised"]) == (2, 1)
