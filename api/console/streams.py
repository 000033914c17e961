"""One stream: what it was and is, live; how it is computed, and who reads it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, NamedTuple

from flask import Flask, abort, g, render_template

from api.console.asking import Api
from api.console.documents import Stream, streams_of
from servioticy.domain.console import ROOT
from servioticy.domain.verdicts import (
    COLLECTED,
    EMITTED,
    FILTERED,
    MISSING,
    STALE,
    SUPERSEDED,
    VERDICTS,
)

ROWS = 10
READERS_SHOWN = 20
PLOTTED = ("number", "integer")
HARMLESS = frozenset({COLLECTED, EMITTED, FILTERED, STALE, MISSING, SUPERSEDED})
"""Verdicts of computations in which nothing went wrong."""
FORMATS = (("csv", "CSV"), ("ndjson", "JSON lines"), ("parquet", "Parquet"))


class Reader(NamedTuple):
    """A composite stream that is computed from this one."""

    service_object: str
    stream: str
    name: str
    is_ours: bool


def add(app: Flask) -> None:
    """`/console/streams/{service object}/{stream}`."""

    @app.get(f"{ROOT}/streams/<service_object>/<stream>")
    def stream_page(service_object: str, stream: str) -> str:
        api: Api = g.signed.api
        document = api.get(service_object)
        found = next((each for each in streams_of(document) if each.name == stream), None)
        if found is None:
            abort(HTTPStatus.NOT_FOUND)
        place = service_object, "streams", stream
        readers, more_readers = _readers(api, *place)
        rows = api.get(*place, "updates", order="desc", limit=ROWS)["data"]
        return render_template(
            "stream.html",
            id=service_object,
            document=document,
            stream=found,
            rows=rows,
            plotted=[name for name in found.channels if found.kind(name) in PLOTTED],
            status=api.found(*place, "status") if found.is_derived else None,
            means=VERDICTS,
            harmless=HARMLESS,
            readers=readers,
            more_readers=more_readers,
            subscriptions=(api.found(*place, "subscriptions") or {}).get("subscriptions", []),
            formats=FORMATS,
            sources=_sources(found),
        )


def _readers(api: Api, *place: str) -> tuple[list[Reader], int]:
    """Return the first that read the stream itself, with their names, and how many more do."""
    tree = api.found(*place, "tree")
    if not tree or not tree["levels"]:
        return [], 0
    names: dict[str, str | None] = {}
    found = []
    first: list[dict[str, Any]] = tree["levels"][0]
    for node in first[:READERS_SHOWN]:
        service_object, _, stream = node["stream"].partition("/")
        if service_object not in names:
            document = api.found(service_object)
            names[service_object] = None if document is None else document.get("name", "")
        name = names[service_object]
        found.append(Reader(service_object, stream, name or service_object, name is not None))
    return found, max(0, len(first) - READERS_SHOWN)


def _sources(stream: Stream) -> list[tuple[str, str]]:
    """Return the code of each channel that is derived."""
    return [
        (name, str(channel["current-value"]))
        for name, channel in stream.channels.items()
        if "current-value" in channel
    ]
