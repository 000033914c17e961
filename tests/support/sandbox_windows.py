"""Windows for tests of the sandbox: what is in them, and programs that read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sandbox import ChannelCode, Program
from sandbox.trees import Event
from servioticy.domain.windows.aggregates import Aggregate

BEGIN, END = 1_000, 2_000

Channels = Mapping[str, Any]


def aggregated(updates: Sequence[Channels], *, sketches: bool = False) -> dict[str, Any]:
    """What a window has of updates, each the values of its channels by their names."""
    if not updates:
        return {"count": 0, "start": BEGIN, "end": END}
    found = Aggregate(sketches)
    for order, channels in enumerate(updates):
        values = {name: {"current-value": value} for name, value in channels.items()}
        found.add(values, BEGIN + order, order)
    return found.as_json(BEGIN, END)


def numbers(*values: float, sketches: bool = False) -> dict[str, Any]:
    """A window of updates with one channel, c."""
    return aggregated([{"c": value} for value in values], sketches=sketches)


def by(channel: str, updates: Sequence[Channels]) -> dict[str, Any]:
    """A window with what it has by the values of a channel, which are texts."""
    keys = dict.fromkeys(each[channel] for each in updates)
    parts = {key: aggregated([u for u in updates if u[channel] == key]) for key in keys}
    return {**aggregated(updates), "by": {channel: parts}}


def an_event(
    *windows: Mapping[str, Any] | None,
    at: int = END - 1,
    node: int = 0,
    path: tuple[int, ...] = (),
    **revision: Any,
) -> Event:
    """What wakes a composite over these windows; `revision` and `early` where they are told so."""
    said = {"windows": windows, "lastUpdate": at} | revision
    document = json.dumps(said, separators=(",", ":")).encode()
    return Event(node, at, document, path)


def a_program(
    code: str, *inputs: str, type_: str = "string", pre: str | None = None, post: str | None = None
) -> Program:
    """A function of windows."""
    channels = (ChannelCode("t", code, type_),)
    name = repr((code, inputs, type_, pre, post))
    return Program(name, "function", inputs, channels, pre, post)


def saying(expression: str, *inputs: str) -> Program:
    """A function that tells a value as JSON: `air` and `water` are its windows."""
    inputs = inputs or ("air", "water")
    return a_program(
        f"function({', '.join(inputs)}) {{ return JSON.stringify({expression}) }}", *inputs
    )
