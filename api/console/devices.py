"""Devices: which there are, when each was last heard of, and what it said."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from flask import Flask, g, redirect, render_template, request

from api.console.asking import Api
from api.console.connecting import About
from api.console.documents import Stream, streams_of
from api.console.showing import seconds
from servioticy.domain.console import ROOT

ON_A_PAGE = 50
ASKED_AT_ONCE = 1_000
"""Last updates that the API tells at once."""
STREAMS_OF_ONE = 20
"""Of which a list shows something."""
VALUES_OF_ONE = 4

_NEXT = re.compile(r'<([^>]*)>;\s*rel="next"')


class Value(NamedTuple):
    """What a channel was last."""

    channel: str
    value: Any
    unit: str


class Row(NamedTuple):
    """A device in a list, or a Service Object that derives something."""

    id: str
    name: str
    is_derived: bool
    seen: int | None
    """the newest timestamp of its streams"""
    values: list[Value]
    """what came last"""


def add(app: Flask, about: About) -> None:
    """`/console/`, `/console/devices`, and what is below."""
    root = f"{about.place.base}{ROOT}"

    @app.get(f"{ROOT}/")
    def home() -> Any:
        is_new = not g.signed.api.get("service-objects", limit=1)["data"]
        return redirect(f"{root}/{'start' if is_new else 'devices'}", 303)

    @app.get(f"{ROOT}/devices")
    def device_list() -> str:
        api: Api = g.signed.api
        name, cursor = request.args.get("name", "").strip(), request.args.get("cursor")
        query = {"limit": ON_A_PAGE, "name": name or None, "cursor": cursor}
        answer = api.ask("GET", "service-objects", query=query)
        rows = list_rows(api, answer.value["data"])
        following = following_page(answer.headers.get("link", ""))
        return render_template("devices.html", devices=rows, name=name, next=following)


def following_page(link: str) -> str:
    """Return what stands behind the question mark of the next page, from the header `Link`."""
    found = _NEXT.search(link)
    return urlsplit(found[1]).query if found else ""


def list_rows(api: Api, found: list[dict[str, Any]]) -> list[Row]:
    """Return a row for each device, with what it has sent last. Raises ApiRefused."""
    streams = {each["id"]: streams_of(api.get(each["id"])) for each in found}
    wanted = [
        {"serviceObject": id_, "stream": stream.name}
        for id_, of_one in streams.items()
        for stream in of_one[:STREAMS_OF_ONE]
    ]
    updates = last_updates(api, wanted)
    return [
        _row(each["id"], each.get("name") or "", streams[each["id"]], updates) for each in found
    ]


def last_updates(api: Api, wanted: list[dict[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the last updates of streams that have one, by Service Object and name."""
    found = {}
    for start in range(0, len(wanted), ASKED_AT_ONCE):
        body = {"streams": wanted[start : start + ASKED_AT_ONCE]}
        for each in api.post("lastUpdates", body=body)["data"]:
            if each.get("update"):
                found[each["serviceObject"], each["stream"]] = each["update"]
    return found


def values_in(stream: Stream, update: dict[str, Any]) -> list[Value]:
    """Return what an update says, with units."""
    return [
        Value(name, channel.get("current-value"), channel.get("unit") or stream.unit(name))
        for name, channel in update["channels"].items()
    ]


def _row(
    id_: str,
    name: str,
    streams: list[Stream],
    updates: dict[tuple[str, str], dict[str, Any]],
) -> Row:
    sent = [(each, updates[id_, each.name]) for each in streams if (id_, each.name) in updates]
    sent.sort(key=lambda pair: -seconds(pair[1]["lastUpdate"]))
    values = [value for stream, update in sent for value in values_in(stream, update)]
    seen = sent[0][1]["lastUpdate"] if sent else None
    is_derived = bool(streams) and all(each.is_derived for each in streams)
    return Row(id_, name, is_derived, seen, values[:VALUES_OF_ONE])
