"""The editor of a document: looked at, tried, put in force; and its earlier versions."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from flask import Flask, g, render_template, request

from api.console.asking import Api
from api.console.attempts import attempted
from api.console.checking import drawn
from api.console.completing import completions
from api.console.editing import Edited, unix, write
from api.console.places import Problem
from api.console.tried import rows
from servioticy.domain.console import ROOT
from servioticy.domain.verdicts import VERDICTS
from servioticy.numbers import whole

DEVICES = f"{ROOT}/devices"
LASTS = (10, 20, 50, 100, 1000)
LAST = 20
VERSIONS_SHOWN = 50
MOST_LINES = 1_000
"""Of a version that is compared: to find the differences of more takes too long here."""
MOST_VERSION = 1_000_000_000
MAX_TEXT_BYTES = 245_760
"""What is longer is shown nowhere: a form with it could not be sent (pages.py)."""
NOT_EDITED = ("id", "userId", "createdAt", "updatedAt", "data", "template")


class Sent(NamedTuple):
    """What comes of a form."""

    text: str
    etag: str
    """Of the state that was edited."""
    is_too_large: bool = False
    """Whether there is none, as a form with it could not be sent."""


def add(app: Flask) -> None:
    """`/console/devices/{id}/document`, what is sent from there, and `../versions/{n}`."""
    _add_editing(app)
    _add_versions(app)

    @app.get(f"{DEVICES}/<device>/document")
    def document_page(device: str) -> str:
        api: Api = g.signed.api
        found = api.ask("GET", device)
        wanted = request.args.get("version", "")
        document = api.get(device, "versions", wanted) if wanted else found.value
        return _page(api, device, _shown(document, found.headers.get("etag", "")))


def _add_editing(app: Flask) -> None:
    @app.post(f"{DEVICES}/<device>/document")
    def save_document(device: str) -> Any:
        api: Api = g.signed.api
        sent = _sent()

        def save(edited: Edited) -> str:
            query = {"detach": "true"} if request.form.get("detach") else {}
            answer = api.ask(
                "PUT", device, body=edited.document, query=query, if_match=sent.etag or None
            )
            now = Sent(sent.text, answer.headers.get("etag", ""))
            return _page(api, device, now, saved=answer.value)

        return _with_text(api, device, sent, save)

    @app.post(f"{DEVICES}/<device>/versions")
    def keep_document(device: str) -> Any:
        api: Api = g.signed.api
        sent = _sent()

        def keep(edited: Edited) -> str:
            kept = api.post(device, "versions", body=edited.document)
            return _page(api, device, sent, saved=kept)

        return _with_text(api, device, sent, keep)

    @app.post(f"{DEVICES}/<device>/try")
    def try_document(device: str) -> Any:
        api: Api = g.signed.api
        sent, last = _sent(), _last()

        def tried(edited: Edited) -> str:
            found = api.post(device, "try", body=edited.document, last=last)
            return _page(api, device, sent, tried=found)

        return _with_text(api, device, sent, tried)


def _add_versions(app: Flask) -> None:
    @app.get(f"{DEVICES}/<device>/versions/<int:version>")
    def version_page(device: str, version: int) -> str:
        api: Api = g.signed.api
        now = api.get(device)
        other = api.get(device, "versions", str(version))
        listed = _versions(api, device)
        active = next((each["version"] for each in listed if each["active"]), None)
        beside = whole(request.args.get("with", ""), 1, MOST_VERSION) or active
        facing = now if beside == active else api.get(device, "versions", str(beside))
        is_newer = beside is not None and version > beside
        before, after = _text(other).splitlines(), _text(facing).splitlines()
        if is_newer:
            before, after = after, before
        is_long = max(len(before), len(after)) > MOST_LINES
        return render_template(
            "version.html",
            id=device,
            document=now,
            version=version,
            active=active,
            beside=beside,
            choices=[each["version"] for each in listed[::-1] if each["version"] != version],
            is_newer=is_newer,
            lines=None if is_long else list(_compared(before, after)),
            text=_text(other) if is_long else "",
        )

    @app.post(f"{DEVICES}/<device>/versions/<int:version>")
    def activate_version(device: str, version: int) -> str:
        api: Api = g.signed.api
        query = {"detach": "true"} if request.form.get("detach") else {}
        answer = api.ask("POST", device, "versions", str(version), "activate", query=query)
        found = api.ask("GET", device)
        now = _shown(found.value, found.headers.get("etag", ""))
        return _page(api, device, now, saved=answer.value)


def _sent() -> Sent:
    text = unix(request.form.get("text", ""))
    return Sent(text, request.form.get("etag", ""))


def _last() -> int:
    found = request.form.get("last", "")
    return int(found) if found in map(str, LASTS) else LAST


def _text(document: Mapping[str, Any]) -> str:
    return write({name: each for name, each in document.items() if name not in NOT_EDITED})


def _shown(document: Mapping[str, Any], etag: str) -> Sent:
    """Return what is to be edited; nothing, where that is too much for a form."""
    text = _text(document)
    if len(text.encode()) > MAX_TEXT_BYTES:
        return Sent("", etag, is_too_large=True)
    return Sent(text, etag)


def _with_text(api: Api, device: str, sent: Sent, use: Callable[[Edited], Any]) -> Any:
    """Return what is made of the text; or the page again, with all that is wrong in its place."""
    found = attempted(sent.text, use)
    if found.status == HTTPStatus.OK:
        return found.made
    page = _page(api, device, sent, wrong=found.wrong, message=found.message, status=found.status)
    return page, found.status


def _page(
    api: Api,
    device: str,
    sent: Sent,
    *,
    wrong: Sequence[Problem] = (),
    message: str = "",
    status: int = 0,
    saved: Mapping[str, Any] | None = None,
    tried: Mapping[str, Any] | None = None,
) -> str:
    document = api.get(device)
    listed = _versions(api, device)
    return render_template(
        "editor.html",
        id=device,
        document=document,
        sent=sent,
        wrong=wrong,
        message=message,
        has_changed=status == HTTPStatus.PRECONDITION_FAILED,
        may_detach=status == HTTPStatus.CONFLICT and "detach" in message,
        saved=saved,
        tried=tried,
        rows=rows(tried, device) if tried else [],
        means=VERDICTS,
        names=completions(document, api),
        tree=drawn(tried, device, api) if tried else None,
        versions=listed[::-1][:VERSIONS_SHOWN],
        lasts=LASTS,
        last=_last(),
    )


def _versions(api: Api, device: str) -> list[dict[str, Any]]:
    """Return those there are, the oldest first; nothing where the token may not see them."""
    found: list[dict[str, Any]] = (api.found(device, "versions") or {}).get("versions", [])
    return found


def _compared(before: list[str], after: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the lines that differ with some around them, each with `+`, `-`, blank or `@`."""
    for line in list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]:
        yield ("@", line) if line.startswith("@@") else (line[0], line[1:])
