"""A workflow as a graph of boxes: its source, procedures and sink, with what waits before each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from servioticy.domain.layout import Box, Layout, laid_out

SOURCE, SINK = "source", "sink"


class Step(NamedTuple):
    """A box of the drawing."""

    name: str
    about: str
    place: Box
    waiting: int | None
    """atoms; None: nothing waits there, as before a source that is sent to"""
    is_procedure: bool
    is_wrong: bool
    """whether atoms have died there"""


class Drawing(NamedTuple):
    """All boxes, and where lines go."""

    steps: list[Step]
    layout: Layout
    links: list[tuple[str, str]]


def drawing(document: Mapping[str, Any], status: Mapping[str, Any]) -> Drawing:
    """Return the drawing of a document that the API has taken, as its steps stand now."""
    names = [SOURCE, *document["procedures"], SINK]
    links = [(left, right) for left, right in document["links"]]
    layout = laid_out(names, links)
    steps = [_step(each, document, status.get(each), layout.boxes[each]) for each in names]
    return Drawing(steps, layout, links)


def _step(
    name: str, document: Mapping[str, Any], told: Mapping[str, Any] | None, place: Box
) -> Step:
    return Step(
        name,
        _about(name, document),
        place,
        told["waiting"] if told else None,
        name in document["procedures"],
        bool(told and told["deadLetters"]),
    )


def _about(name: str, document: Mapping[str, Any]) -> str:
    if name not in (SOURCE, SINK):
        return ""
    end = document[name]
    if "stream" in end:
        return f"stream {end['stream']['stream']}"
    if "files" in end:
        return f"{end['files']['format']} of {end['files']['store']}"
    return next((word for kind, word in _KINDS.items() if kind in end), "")


_KINDS = {"http": "by HTTP", "collect": "collected", "callback": "a callback", "none": "nowhere"}
