"""The first visit: three steps from nothing to a value that is derived live."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Flask, abort, g, redirect, render_template, request

from api.console.asking import Api, path_of
from api.console.connecting import About, Commands, sending
from api.console.documents import Stream, streams_of
from api.console.making import make_device, template_of
from api.console.starters import STARTER, STARTERS, Starter, starter
from servioticy.domain.console import ROOT

START = f"{ROOT}/start"
MAX_NAME = 60


def add(app: Flask, about: About) -> None:
    """`/console/start` and what follows it."""
    base = about.place.base

    @app.get(START)
    def start() -> str:
        return render_template("start_device.html", starters=STARTERS)

    @app.post(START)
    def start_with() -> Any:
        chosen = starter(request.form.get("kind", "")) or abort(HTTPStatus.BAD_REQUEST)
        api: Api = g.signed.api
        name = request.form.get("name", "").strip()[:MAX_NAME] or chosen.title
        made = make_device(api, template_of(api, chosen), {"name": name})
        return redirect(f"{base}{START}{path_of(made)}", 303)

    @app.get(f"{START}/<device>")
    def start_derive(device: str) -> str:
        document, chosen = _device(device)
        return render_template("start_derive.html", device=device, document=document, kind=chosen)

    @app.post(f"{START}/<device>")
    def start_deriving(device: str) -> Any:
        document, chosen = _device(device)
        wanted = request.form.get("derivation", "")
        found = next((each for each in chosen.derivations if each.id == wanted), None)
        if found is None:
            abort(HTTPStatus.BAD_REQUEST)
        name = document.get("name") or chosen.title
        made = found.document(name, device, chosen.stream, chosen.channel)
        id_ = g.signed.api.post(body=made)["id"]
        return redirect(f"{base}{START}{path_of(device, id_)}", 303)

    @app.get(f"{START}/<device>/<derived>")
    def start_send(device: str, derived: str) -> str:
        return _sent(device, derived, None)

    @app.post(f"{START}/<device>/<derived>")
    def start_sending(device: str, derived: str) -> str:
        document, chosen = _device(device)
        token = g.signed.api.post(device, "api_token")["api_token"]
        stream = next(each for each in streams_of(document) if each.name == chosen.stream)
        return _sent(device, derived, sending(device, stream, token, about))


def _sent(device: str, derived: str, commands: Commands | None) -> str:
    """Return the last step; without `commands` the token has not been shown yet."""
    document, chosen = _device(device)
    result = streams_of(g.signed.api.get(derived))[0]
    source = Stream(chosen.stream, document["streams"][chosen.stream]["channels"])
    return render_template(
        "start_send.html",
        device=device,
        derived=derived,
        document=document,
        source=source,
        result=result,
        kind=chosen,
        commands=commands,
    )


def _device(device: str) -> tuple[dict[str, Any], Starter]:
    """Return a device that was made here, and of which kind it is."""
    document: dict[str, Any] = g.signed.api.get(device)
    fields = document.get("customFields")
    found = starter(str(fields.get(STARTER))) if isinstance(fields, dict) else None
    if found is None:
        abort(HTTPStatus.NOT_FOUND)
    return document, found
