"""A document while it is written: what is wrong with it, and what it would be made of.

Asked of the API as a trial that plays nothing; the answer is a part of the editor's page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flask import Flask, g, render_template, request

from api.console.asking import Api
from api.console.attempts import attempted
from api.console.completing import completions
from api.console.editing import Edited, unix
from api.console.names import Names
from servioticy.domain.console import ROOT
from servioticy.domain.layout import Box, Layout, laid_out

MOST_DRAWN = 60
"""Streams; of more it is told how many there are."""


class Drawn(NamedTuple):
    """What is made of what, as a graph."""

    boxes: list[tuple[str, str, bool, Box]]
    """of each stream its name, whose it is, whether it is computed, and where it stands"""
    layout: Layout | None
    """None: there are too many streams"""
    streams: int


def add(app: Flask) -> None:
    """`/console/devices/{id}/check`."""

    @app.post(f"{ROOT}/devices/<device>/check")
    def check_document(device: str) -> str:
        api: Api = g.signed.api

        def use(edited: Edited) -> tuple[Any, Any]:
            return edited.document, api.post(device, "try", body=edited.document, last=0)

        found = attempted(unix(request.form.get("text", "")), use)
        document, tried = found.made or (None, None)
        return render_template(
            "checked.html",
            wrong=found.wrong,
            message=found.message,
            warnings=tried["warnings"] if tried else [],
            names=completions(document, api) if document is not None else None,
            tree=drawn(tried, device, api) if tried else None,
        )


def drawn(tried: Mapping[str, Any], device: str, api: Api) -> Drawn:
    """Return the graph of what a trial says that streams would be computed from."""
    names, inputs = Names(api), tried["inputs"]
    edges = {
        (each, f"{device}/{stream}")
        for stream, read in inputs.items()
        for each in read
        if each != f"{device}/{stream}"  # what came of it last
    }
    computed = [f"{device}/{stream}" for stream in inputs]
    streams = dict.fromkeys([*sorted(each for each, _ in edges), *computed])
    if len(streams) > MOST_DRAWN:
        return Drawn([], None, len(streams))
    layout = laid_out(streams, edges)
    boxes = []
    for each, box in layout.boxes.items():
        owner, _, stream = each.partition("/")
        whose = "" if owner == device else names.of(owner)[0]
        boxes.append((stream, whose, owner == device and stream in inputs, box))
    return Drawn(boxes, layout, len(streams))
