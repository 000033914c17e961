"""Windows: what streams over windows have open, how far event time is, and what holds it back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flask import Flask, g, render_template, request

from api.console.asking import Api
from api.console.devices import following_page
from servioticy.domain.console import ROOT

OBJECTS = 50
"""Service Objects of which a page tells."""
STREAMS = 100
"""Of these, of which it is asked how they stand."""


class Row(NamedTuple):
    """A stream over windows."""

    service_object: str
    stream: str
    name: str
    """of the Service Object"""
    shape: str
    """of its windows, in words"""
    told: Mapping[str, Any]
    """its windows, as the API tells of them; nothing where they have gone"""
    waits_for: str
    """the name of the stream that holds the others back; or empty"""

    @property
    def ends(self) -> int | None:
        """When the first of those that are open ends; None: none is, or not by time."""
        return next((each["end"] for each in self.told.get("open", ()) if "end" in each), None)


def add(app: Flask) -> None:
    """`/console/windows`."""

    @app.get(f"{ROOT}/windows")
    def windows_page() -> str:
        api: Api = g.signed.api
        query = {"limit": OBJECTS, "cursor": request.args.get("cursor")}
        answer = api.ask("GET", "service-objects", query=query)
        names = {each["id"]: each.get("name") or each["id"] for each in answer.value["data"]}
        over = [
            (id_, stream, each["window"])
            for id_ in names
            for stream, each in ((api.found(id_) or {}).get("streams") or {}).items()
            if isinstance(each.get("window"), dict)
        ]
        rows = [_row(api, names, *each) for each in over[:STREAMS]]
        return render_template(
            "windows.html",
            rows=rows,
            is_cut=len(over) > STREAMS,
            next=following_page(answer.headers.get("link", "")),
        )


def _row(
    api: Api, names: Mapping[str, str], id_: str, stream: str, window: Mapping[str, Any]
) -> Row:
    found = api.found(id_, "streams", stream, "status") or {}
    told = found.get("windows") or {}
    holder, _, source = str(told.get("held-back-by") or "").partition("/")
    waits_for = f"{names.get(holder, holder)} \u203a {source}" if source else ""
    return Row(id_, stream, names[id_], _shape(window), told, waits_for)


def _shape(window: Mapping[str, Any]) -> str:
    """Return how its windows lie, in words: `tumbling, size 10s, lateness 1m`."""
    more = ", ".join(
        f"{name} {window[name]}"
        for name in ("size", "every", "gap", "count", "delay", "lateness", "idle")
        if name in window
    )
    return f"{window.get('type', '')}, {more}" if more else str(window.get("type", ""))
