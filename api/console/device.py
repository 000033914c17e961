"""One device: its streams, how it connects, a test update, and what it is asked to do."""

from __future__ import annotations

import math
import time
from http import HTTPStatus
from typing import Any

from flask import Flask, abort, g, redirect, render_template, request

from api.console import devices
from api.console.asking import Api, ApiRefused, path_of
from api.console.connecting import About, claiming, sending
from api.console.documents import Stream, streams_of
from api.console.making import choices, make_device, template_of, value_of, values_of
from api.console.starters import starter
from servioticy.domain.console import ROOT
from servioticy.numbers import whole

DEVICES = f"{ROOT}/devices"
ASKED_SHOWN = 10
"""Actuations that a page tells of and follows: those that were asked for last."""
STREAMS_ON_A_PAGE = 50
CHANNELS_SHOWN = 20
"""Of a stream, in its last update and for a test update."""


def add(app: Flask, about: About) -> None:
    """`/console/devices/new`, `/console/devices/{id}` and what is asked of it there."""
    base = about.place.base
    _add_making(app, base)
    _add_connecting(app, about)

    @app.get(f"{DEVICES}/<device>")
    def device_page(device: str) -> str:
        api: Api = g.signed.api
        document = api.get(device)
        every = streams_of(document)
        page = _page_number(len(every))
        streams = every[(page - 1) * STREAMS_ON_A_PAGE : page * STREAMS_ON_A_PAGE]
        wanted = [{"serviceObject": device, "stream": each.name} for each in streams]
        updates = devices.last_updates(api, wanted)
        found = api.found(device, "actuations", "newest", limit=ASKED_SHOWN)
        return render_template(
            "device.html",
            id=device,
            document=document,
            streams=streams,
            count=len(every),
            is_sent=any(not each.is_derived for each in every),
            page_number=page,
            pages=_pages(len(every)),
            channels_shown=CHANNELS_SHOWN,
            updates={name: update for (_, name), update in updates.items()},
            actions=document.get("actions") or [],
            asked=found["data"] if found else [],
            asked_now=request.args.get("asked"),
            sent=request.args.get("sent"),
        )

    @app.post(f"{DEVICES}/<device>/test")
    def test_update(device: str) -> Any:
        api: Api = g.signed.api
        name = request.form.get("stream", "")
        stream = _stream(api.get(device), name)
        channels = {
            channel: {"current-value": value_of(stream.kind(channel), text)}
            for channel in stream.channels
            if (text := request.form.get(f"channel.{channel}", "").strip())
        }
        update = {"channels": channels, "lastUpdate": int(time.time() * 1000)}
        api.ask("PUT", device, "streams", name, body=update)
        return redirect(f"{base}{DEVICES}{path_of(device)}?sent=1", 303)

    @app.post(f"{DEVICES}/<device>/ask")
    def ask_device(device: str) -> Any:
        action = request.form.get("action", "")
        parameters = request.form.get("parameters", "")
        made = g.signed.api.post(device, "actuations", action, body=parameters)
        return redirect(f"{base}{DEVICES}{path_of(device)}?asked={made['id']}#actions", 303)


def _add_making(app: Flask, base: str) -> None:
    @app.get(f"{DEVICES}/new")
    def new_device() -> str:
        found = choices(g.signed.api)
        wanted = request.args.get("template", "")
        chosen = next((each for each in found if each.id == wanted), None)
        return render_template("new_device.html", choices=found, chosen=chosen)

    @app.post(f"{DEVICES}/new")
    def make_new_device() -> Any:
        api: Api = g.signed.api
        wanted = request.form.get("template", "")
        kind = starter(wanted)
        template = template_of(api, kind) if kind else wanted
        parameters = api.get("templates", template)["parameters"]
        try:
            made = make_device(api, template, values_of(parameters, request.form))
        except ApiRefused as refused:
            if refused.status != HTTPStatus.BAD_REQUEST:
                raise
            found = choices(api)
            chosen = next((each for each in found if each.id == template), None)
            page = render_template(
                "new_device.html", choices=found, chosen=chosen, message=refused.message
            )
            return page, refused.status
        return redirect(f"{base}{DEVICES}{path_of(made)}", 303)


def _add_connecting(app: Flask, about: About) -> None:
    @app.post(f"{DEVICES}/<device>/token")
    def new_token(device: str) -> str:
        api: Api = g.signed.api
        document = api.get(device)
        sent = [each for each in streams_of(document) if not each.is_derived]
        if not sent:
            abort(HTTPStatus.BAD_REQUEST, "It has no stream that a device sends.")
        made = api.post(device, "api_token")["api_token"]
        commands = sending(device, sent[0], made, about)
        return render_template(
            "connect.html", id=device, document=document, token=made, commands=commands
        )

    @app.post(f"{DEVICES}/<device>/claim-code")
    def new_claim_code(device: str) -> str:
        api: Api = g.signed.api
        document = api.get(device)
        made = api.post(device, "claim-codes", body={})
        code = made["claimCodes"][0]["code"]
        commands = claiming(code, document.get("name") or device, about)
        return render_template(
            "connect.html",
            id=device,
            document=document,
            code=code,
            until=made["expiresAt"],
            commands=commands,
        )


def _pages(streams: int) -> int:
    return max(1, math.ceil(streams / STREAMS_ON_A_PAGE))


def _page_number(streams: int) -> int:
    """Return the page that is asked for; the first one where there is none of this number."""
    return whole(request.args.get("page", ""), 1, _pages(streams)) or 1


def _stream(document: dict[str, Any], name: str) -> Stream:
    found = next((each for each in streams_of(document) if each.name == name), None)
    if found is None:
        abort(HTTPStatus.NOT_FOUND)
    return found
