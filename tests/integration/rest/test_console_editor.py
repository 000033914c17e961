"""The editor's pages over the real API: what a browser is not needed for."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from api_builders import NOW, SIMPLE, Caller, Platform, Served, trials
from console_visits import client, signed_in, tenant
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.app import create_app
from api.console.editing import line_and_column, read
from api.console.editor import MAX_TEXT_BYTES
from api.console.pages import MAX_FORM_BYTES
from sandbox.text import argument_names
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import BAD_CODE
from servioticy.domain.model import Definition
from servioticy.settings import Settings

__all__ = ["client", "tenant"]

CODE = "function(a) {\n  return iot.value(a) * 2\n}"
DOCUMENT = {
    "version": "0.2.0",
    "name": "cellar",
    "streams": {
        **SIMPLE["streams"],
        "twice": {"channels": {"v": {"type": "number", "current-value": CODE}}},
    },
}


def check(_tenant: int, definition: Definition) -> list[BadDocument]:
    """Refuse code that says so, as the sandbox would."""
    streams = {each.ref.stream: each for each in definition.streams}
    code = str(streams["twice"].composite) if "twice" in streams else ""
    if "WRONG" not in code:
        return []
    pointer = "/streams/twice/channels/v/current-value"
    return [BadDocument("stream twice: channel v: line 2, column 10: no", pointer, BAD_CODE)]


@pytest.fixture
def served(backend: Platform) -> Served:
    settings = Settings()
    tries = trials(backend)
    app = create_app(backend.ports, settings, lambda: NOW, argument_names, check, trials=tries)
    return Served(app, backend)


@pytest.fixture
def so(tenant: Caller) -> str:
    return tenant.create(DOCUMENT)


def fields(page: str) -> dict[str, str]:
    """What the form of a page sends."""
    text = re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)
    etag = re.search(r'name="etag" value="([^"]*)"', page)
    csrf = re.search(r'name="csrf" content="([0-9a-f]+)"', page)
    assert text is not None
    assert etag is not None
    assert csrf is not None
    return {"text": html.unescape(text[1]), "etag": html.unescape(etag[1]), "csrf": csrf[1]}


def edit(client: FlaskClient, so: str) -> dict[str, str]:
    answer = client.get(f"/console/devices/{so}/document")
    assert answer.status_code == 200, answer.text
    return fields(answer.text)


def send(client: FlaskClient, so: str, form: dict[str, str], to: str = "document") -> TestResponse:
    """As browsers do: line ends are two characters."""
    sent = form | {"text": form["text"].replace("\n", "\r\n")}
    return client.post(f"/console/devices/{so}/{to}", data=sent)


def versions(tenant: Caller, so: str) -> list[Any]:
    listed: list[Any] = tenant.ask("GET", f"/{so}/versions").get_json()["versions"]
    return listed


def test_saved_as_it_is_shown_nothing_has_changed(
    client: FlaskClient, tenant: Caller, so: str
) -> None:
    before = tenant.ask("GET", f"/{so}").get_json()
    form = edit(client, so)
    assert f"`\n{CODE}\n`" in form["text"]

    assert send(client, so, form).status_code == 200
    after = tenant.ask("GET", f"/{so}").get_json()
    assert after | {"updatedAt": 0} == before | {"updatedAt": 0}
    assert len(versions(tenant, so)) == 1


def test_what_is_saved_is_a_new_version_with_its_warnings(
    client: FlaskClient, tenant: Caller, so: str
) -> None:
    form = edit(client, so)
    form["text"] = (
        form["text"]
        .replace("* 2", "* 3")
        .replace('"x": {"type": "number"}', '"x": {"type": "string"}')
    )
    answer = send(client, so, form)

    assert "Version 2 is in force." in answer.text
    assert "channel x was number and is string now" in html.unescape(answer.text)
    code = tenant.ask("GET", f"/{so}").get_json()["streams"]["twice"]["channels"]["v"]
    assert code["current-value"] == CODE.replace("* 2", "* 3")
    again = fields(answer.text)
    again["text"] = again["text"].replace("* 3", "* 4")
    assert "Version 3 is in force." in send(client, so, again).text


def test_two_who_edit_are_told_of_each_other_and_lose_nothing(
    client: FlaskClient, tenant: Caller, so: str
) -> None:
    one, other = edit(client, so), edit(client, so)
    one["text"] = one["text"].replace("* 2", "* 3")
    other["text"] = other["text"].replace("* 2", "* 5")
    assert send(client, so, one).status_code == 200
    answer = send(client, so, other)

    assert answer.status_code == 412
    assert "The Service Object has changed" in answer.text
    kept = fields(answer.text)
    assert "* 5" in kept["text"]
    assert len(versions(tenant, so)) == 2
    assert "Version 3 is in force." in send(client, so, kept).text


@pytest.mark.parametrize("to", ["document", "try", "versions"])
@pytest.mark.parametrize(
    ("old", "new", "at", "reason"),
    [
        ('"cellar"', '"cellar', '"cellar', "does not end in its line"),
        ("* 2", "WRONG", "iot.value", "stream twice: channel v: line 2, column 10: no"),
        ('{"type": "number"}', '{"type": "nmber"}', '"nmber"', "nmber"),
    ],
)
def test_what_is_wrong_stands_at_its_place(
    to: str, old: str, new: str, at: str, reason: str, client: FlaskClient, so: str
) -> None:
    form = edit(client, so)
    form["text"] = form["text"].replace(old, new, 1)
    answer = send(client, so, form, to)

    assert answer.status_code == 400
    text = html.unescape(answer.text)
    line, column = line_and_column(form["text"], form["text"].index(at))
    assert f"Line {line}, column {column}" in text
    assert reason in text
    assert fields(answer.text)["text"] == form["text"]


def test_trying_shows_the_differences_and_changes_nothing(
    served: Served, client: FlaskClient, tenant: Caller, so: str
) -> None:
    tenant.put(so)
    served.store()
    form = edit(client, so)
    form["text"] = form["text"].replace('"twice": {', '"thrice": {')
    answer = send(client, so, form | {"last": "50"}, "try")

    text = html.unescape(answer.text)
    assert answer.status_code == 200
    assert "1 of 1 update would differ" in text
    assert '<td data-name="Stream"><span>thrice</span>' in text
    assert "not computed" in text
    assert '<option value="50" selected>' in text
    assert fields(answer.text)["text"] == form["text"]
    assert len(versions(tenant, so)) == 1


def test_what_is_saved_for_later_is_put_in_force_later(
    client: FlaskClient, tenant: Caller, so: str
) -> None:
    form = edit(client, so)
    form["text"] = form["text"].replace("* 2", "* 3")
    answer = send(client, so, form, "versions")
    text = html.unescape(answer.text)

    assert "Version 2 is saved, and not in force" in text
    assert "* 3" in fields(answer.text)["text"]
    assert [each["active"] for each in versions(tenant, so)] == [True, False]
    page = client.get(f"/console/devices/{so}/versions/2").text
    assert "What it changes" in page
    assert '<span class="gone">-  return iot.value(a) * 2</span>' in page
    assert '<span class="added">+  return iot.value(a) * 3</span>' in page

    answer = client.post(f"/console/devices/{so}/versions/2", data={"csrf": form["csrf"]})
    assert "Version 2 is in force." in answer.text
    assert [each["active"] for each in versions(tenant, so)] == [False, True]


def test_versions_are_compared_and_put_in_force_again(
    client: FlaskClient, tenant: Caller, so: str
) -> None:
    form = edit(client, so)
    form["text"] = form["text"].replace("* 2", "* 3")
    send(client, so, form)
    page = client.get(f"/console/devices/{so}/versions/1").text
    assert '<span class="gone">-  return iot.value(a) * 2</span>' in page
    assert '<span class="added">+  return iot.value(a) * 3</span>' in page
    assert "* 2" in fields(client.get(f"/console/devices/{so}/document?version=1").text)["text"]

    form = edit(client, so)
    send(client, so, {**form, "text": form["text"].replace("* 3", "* 4")})
    page = client.get(f"/console/devices/{so}/versions/2?with=1").text
    assert "From version 1, to version 2." in page
    assert '<span class="added">+  return iot.value(a) * 3</span>' in page
    assert client.get(f"/console/devices/{so}/versions/2?with=9").status_code == 404

    answer = client.post(f"/console/devices/{so}/versions/1", data={"csrf": form["csrf"]})
    assert "Version 1 is in force." in answer.text
    assert "* 2" in fields(answer.text)["text"]
    assert [each["active"] for each in versions(tenant, so)] == [True, False, False]
    assert client.post(f"/console/devices/{so}/versions/2", data={}).status_code == 403
    assert client.get(f"/console/devices/{so}/versions/9").status_code == 404


def test_what_is_sent_without_what_our_pages_carry_changes_nothing(
    client: FlaskClient, tenant: Caller, so: str
) -> None:
    form = edit(client, so)
    form["text"] = form["text"].replace("* 2", "* 3")
    del form["csrf"]
    for to in ("document", "try"):
        assert send(client, so, form, to).status_code == 403
    assert len(versions(tenant, so)) == 1


def test_text_of_others_is_text(client: FlaskClient, tenant: Caller) -> None:
    code = "function(a) {\n return '</textarea><script>alert(1)</script>'\n}"
    streams = {
        **SIMPLE["streams"],
        "<b>": {"channels": {'"><img src=x>': {"type": "string", "current-value": code}}},
    }
    so = tenant.create({"version": "0.2.0", "streams": streams})
    page = client.get(f"/console/devices/{so}/document").text

    assert "<script>alert" not in page
    assert "<img src=x" not in page
    form = fields(page)
    assert read(form["text"]).document["streams"]["<b>"] == streams["<b>"]
    form["text"] = form["text"].replace('"string"', '"<i>"', 1)
    assert "<i>" not in send(client, so, form).text.replace("&lt;i&gt;", "")


@pytest.mark.parametrize(("more", "is_shown"), [(0, True), (1, False)], ids=["fits", "too-large"])
def test_what_no_form_could_send_back_is_not_edited(
    client: FlaskClient, tenant: Caller, more: int, is_shown: bool
) -> None:
    """Or whoever has changed it loses it all."""
    document = {"streams": {"s": {"channels": {"v": {"type": "number"}}}}, "description": ""}
    empty = edit(client, tenant.create(document))["text"]
    left = MAX_TEXT_BYTES - len(empty.encode())
    so = tenant.create(document | {"description": "x" * (left + more)})
    page = client.get(f"/console/devices/{so}/document").text

    assert ("<textarea" in page) == is_shown
    assert ("too large to be edited here" in page) != is_shown


def test_a_form_has_room_for_the_largest_text() -> None:
    assert MAX_TEXT_BYTES + 16_384 <= MAX_FORM_BYTES


def test_trying_windows_shows_their_results_by_time(
    served: Served, client: FlaskClient, tenant: Caller, so: str
) -> None:
    """With an update nothing of them differs: they end later, by themselves."""
    second = int(NOW) - 7200
    for at in (second, second + 1):
        assert tenant.put(so, b'{"channels":{"x":{"current-value":3}},"lastUpdate":%d}' % at)
    served.store()
    form = edit(client, so)
    window = '"twice": {"window": {"type": "tumbling", "size": "1m", "emit": "updates"},'
    form["text"] = form["text"].replace('"twice": {', window, 1)
    answer = send(client, so, form | {"last": "1000"}, "try")

    text = html.unescape(answer.text)
    assert answer.status_code == 200, text
    assert "results of windows would differ" in text
    assert '<span class="badge">early 1</span>' in text


def checked(client: FlaskClient, so: str, text: str) -> str:
    """What stands beside a text while it is written."""
    csrf = edit(client, so)["csrf"]
    answer = client.post(f"/console/devices/{so}/check", data={"text": text, "csrf": csrf})
    assert answer.status_code == 200, answer.text
    return answer.text


@pytest.mark.parametrize(
    ("old", "new", "at", "reason"),
    [
        ('"cellar"', '"cellar', '"cellar', "does not end in its line"),
        ("* 2", "WRONG", "iot.value", "stream twice: channel v: line 2, column 10: no"),
    ],
)
def test_what_is_wrong_is_told_while_it_is_written(
    old: str, new: str, at: str, reason: str, client: FlaskClient, tenant: Caller, so: str
) -> None:
    text = edit(client, so)["text"].replace(old, new, 1)
    line, column = line_and_column(text, text.index(at))

    found = checked(client, so, text)
    assert f'data-line="{line}" data-column="{column}"' in found
    assert reason in html.unescape(found)
    assert "<datalist>" not in found, "what fits is known of good documents"
    assert len(versions(tenant, so)) == 1


def test_names_warnings_and_the_tree_are_told_before_saving(
    client: FlaskClient, tenant: Caller, so: str
) -> None:
    """Of the text as it is: those of the version in force may be others."""
    device = tenant.create({"name": "<Roof>", **SIMPLE})
    text = edit(client, so)["text"].replace("function(a)", "function(a, roof)")
    text = text.replace('"twice"', '"thrice"')
    group = f'"groups": {{"roof": {{"soIds": ["{device}"], "stream": "a"}}}},'
    found = checked(client, so, text.replace('"streams"', f'{group} "streams"', 1))

    assert '<option value="thrice">' in found
    named = '<option value="iot.value(roof, &#39;x&#39;)" data-of="roof" data-channel="x">'
    assert named in found, "the channels of a group are those of what is in it"
    assert found.count('<g class="node') == 3
    assert "&lt;Roof&gt;" in found
    assert "Nothing is wrong" in found
    text = edit(client, so)["text"]
    text = text.replace('"x": {"type": "number"}', '"x": {"type": "string"}', 1)
    warned = checked(client, so, text)
    assert "channel x was number and is string now" in html.unescape(warned)
    assert len(versions(tenant, so)) == 1


def test_whoever_may_not_change_a_document_has_it_checked_by_nobody(
    served: Served, client: FlaskClient, tenant: Caller, so: str
) -> None:
    wanted = {"name": "reader", "rights": ["list", "read", "inspect"]}
    reader = signed_in(served, tenant.ask("POST", "/tokens", json=wanted).get_json()["token"])
    form = edit(reader, so)
    assert reader.post(f"/console/devices/{so}/check", data=form).status_code == 403
    del form["csrf"]
    assert client.post(f"/console/devices/{so}/check", data=form).status_code == 403
