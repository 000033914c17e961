"""One update's tree: whom it woke, how each branch went on, and why it ended."""

from __future__ import annotations

from typing import Any, NamedTuple

from flask import Flask, g, render_template, request

from api.console.asking import Api
from api.console.names import Names
from api.console.streams import HARMLESS
from servioticy.domain.console import ROOT
from servioticy.domain.layout import HEIGHT, WIDTH, laid_out
from servioticy.domain.verdicts import EMITTED, VERDICTS

KNOWN = {
    "noted": "",
    "stored": "Its output is stored; what it read is what the history has up to then.",
    "rule": "Another path of the same update was here first.",
    "open": "Nothing came out. Why is kept of the last of each kind only, and that was not it.",
}
"""What is to be said of how an ending is known."""


TOLD_TIMES = 20
"""Streams of which it is asked what their computations take."""


class Cost(NamedTuple):
    """What the computations of a stream have taken so far."""

    computations: int
    each_ms: float
    """of the processor, in the mean"""


class Node(NamedTuple):
    """A stream of the tree, as it is drawn."""

    service_object: str
    stream: str
    name: str
    is_ours: bool
    ending: str
    """a verdict; empty of the update itself"""
    is_bad: bool
    timestamp: int | None
    """of what was made"""
    after: int | None = None
    """ms from when the update was accepted, or else stored, until this was stored, if known"""


def add(app: Flask) -> None:
    """`/console/streams/{service object}/{stream}/trace?timestamp=`."""

    @app.get(f"{ROOT}/streams/<service_object>/<stream>/trace")
    def trace_page(service_object: str, stream: str) -> str:
        api: Api = g.signed.api
        found = api.get(
            service_object,
            "streams",
            stream,
            "trace",
            timestamp=request.args.get("timestamp") or None,
        )
        names = Names(api)
        nodes = _nodes(found, names)
        layout = laid_out(
            nodes, {(each["triggeredBy"], each["stream"]) for each in found["steps"]}
        )
        return render_template(
            "trace.html",
            id=service_object,
            stream=stream,
            name=names.of(service_object)[0],
            trace=found,
            nodes=nodes,
            drawn=[(nodes[key], box) for key, box in layout.boxes.items()],
            layout=layout,
            box=(WIDTH, HEIGHT),
            means=VERDICTS,
            harmless=HARMLESS,
            known=KNOWN,
            emitted=EMITTED,
            costs=_costs(found, nodes, api),
        )


def _costs(trace: dict[str, Any], nodes: dict[str, Node], api: Api) -> dict[str, Cost]:
    """Return what computations of the first streams of the tree take, where one may know that."""
    found = {}
    ours = dict.fromkeys(step["stream"] for step in trace["steps"])
    for each in [key for key in ours if nodes[key].is_ours][:TOLD_TIMES]:
        node = nodes[each]
        told = api.found(node.service_object, "streams", node.stream, "status") or {}
        count = sum(one["count"] for one in told.get("verdicts", ()))
        if count:
            found[each] = Cost(count, told["cpu-seconds"] * 1000 / count)
    return found


def _nodes(trace: dict[str, Any], names: Names) -> dict[str, Node]:
    """Return each stream of the tree by its name; one with an output has that for its ending."""
    service_object, _, stream = trace["stream"].partition("/")
    name, is_ours = names.of(service_object)
    origin = Node(service_object, stream, name, is_ours, "", is_bad=False, timestamp=None)
    began = trace.get("acceptedAt", trace.get("storedAt"))
    after = _after(trace, began) if "acceptedAt" in trace else None
    nodes = {trace["stream"]: origin._replace(timestamp=trace["lastUpdate"], after=after)}
    for step in trace["steps"]:
        before = nodes.get(step["stream"])
        if before is not None and before.ending in ("", EMITTED):
            continue
        service_object, _, stream = step["stream"].partition("/")
        verdict = step["verdict"]
        if before is not None and before.ending and verdict is None:
            continue
        name, is_ours = names.of(service_object)
        is_bad = verdict is not None and verdict not in HARMLESS
        ending, made = verdict or "no output", step.get("lastUpdate")
        nodes[step["stream"]] = Node(
            *(service_object, stream, name, is_ours, ending, is_bad, made), _after(step, began)
        )
    return nodes


def _after(update: dict[str, Any], began: int | None) -> int | None:
    stored = update.get("storedAt")
    return None if stored is None or began is None else stored - began
