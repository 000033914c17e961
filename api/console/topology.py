"""The graph of the tenant's streams: what devices send, and all that is made of it."""

from __future__ import annotations

import time
from typing import Any, NamedTuple
from urllib.parse import urlencode

from flask import Flask, g, render_template, request

from api.console.asking import Api
from api.console.devices import following_page
from api.console.documents import streams_of
from api.console.folding import LIKE, Folded, folded
from api.console.layout import HEIGHT, WIDTH, Edge, laid_out
from api.console.showing import plural
from servioticy.domain.console import ROOT

OBJECTS = 50
"""Service Objects on a page; what is made of their streams comes with them."""
MOST = 500
"""Boxes on a page."""
GATHERED = 5_000
"""Streams that are looked at for them."""
SECONDS = 4.0
"""So long they are looked for."""
WATCHED = 50
"""Service Objects whose updates a page counts: a tenant may watch 100 at a time."""
OPENED = 100
"""Boxes that are not folded, as their addresses say."""


class Box(NamedTuple):
    """What stands in a place of the page: a stream, or several."""

    service_object: str
    """empty: of several"""
    stream: str
    """empty: several"""
    title: str
    about: str
    is_derived: bool
    is_ours: bool
    key: str
    """by which it is opened"""


class Node(NamedTuple):
    """A stream of the graph."""

    service_object: str
    stream: str
    name: str
    """of the Service Object; its id where it has none, or is another tenant's"""
    is_derived: bool
    is_ours: bool


class Graph:
    """What is found of the graph, one Service Object after the other."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._documents: dict[str, dict[str, Any] | None] = {}
        self.nodes: dict[str, Node] = {}
        self.edges: set[Edge] = set()
        self.is_cut = False
        """Whether there is more than is looked at."""
        self._until = time.monotonic() + SECONDS
        self._below: set[str] = set()
        """streams whose readers are known, as they stand in a whole tree"""

    def add(self, service_object: str) -> None:
        """Add the streams of one of ours, and what is computed from them. Raises ApiRefused."""
        for stream in streams_of(self._document(service_object) or {}):
            key = f"{service_object}/{stream.name}"
            if self._has(key) and key not in self._below:
                self._add_tree(service_object, stream.name)

    def _add_tree(self, service_object: str, stream: str) -> None:
        if time.monotonic() > self._until:
            self.is_cut = True
            return
        tree = self._api.get(service_object, "streams", stream, "tree")
        is_whole = tree.get("complete", True)
        for node in (each for level in tree["levels"] for each in level):
            if is_whole and not node.get("borders"):
                self._below.add(node["stream"])
            if self._has(node["triggeredBy"]) and self._has(node["stream"]):
                self.edges.add((node["triggeredBy"], node["stream"]))

    def _has(self, stream: str) -> bool:
        """Return whether the stream has its place on the page; the first ones get one."""
        if stream in self.nodes:
            return True
        if len(self.nodes) >= GATHERED:
            self.is_cut = True
            return False
        service_object, _, name = stream.partition("/")
        document = self._document(service_object)
        found = {each.name: each for each in streams_of(document or {})}
        is_derived = document is None or (name in found and found[name].is_derived)
        title = (document or {}).get("name") or service_object
        self.nodes[stream] = Node(service_object, name, title, is_derived, document is not None)
        return True

    def _document(self, service_object: str) -> dict[str, Any] | None:
        if service_object not in self._documents:
            self._documents[service_object] = self._api.found(service_object)
        return self._documents[service_object]


def add(app: Flask) -> None:
    """`/console/topology`."""

    @app.get(f"{ROOT}/topology")
    def topology() -> str:
        api: Api = g.signed.api
        name, cursor = request.args.get("name", "").strip(), request.args.get("cursor")
        query = {"limit": OBJECTS, "name": name or None, "cursor": cursor}
        answer = api.ask("GET", "service-objects", query=query)
        graph = Graph(api)
        for each in answer.value["data"]:
            graph.add(each["id"])
        opened = request.args.getlist("open")[:OPENED]
        drawn = folded(
            graph.nodes, graph.edges, lambda key: key.partition("/")[0], set(opened), MOST
        )
        boxes = {key: _box(key, members, graph) for key, members in drawn.boxes.items()}
        layout = laid_out(boxes, drawn.edges)
        watched = list(dict.fromkeys(n.service_object for n in graph.nodes.values() if n.is_ours))
        here = {key: value for key, value in (("name", name), ("cursor", cursor)) if value}
        return render_template(
            "topology.html",
            boxes=[(boxes[key], at) for key, at in layout.boxes.items()],
            layout=layout,
            edges=[(boxes[left], boxes[right]) for left, right in sorted(drawn.edges)],
            box=(WIDTH, HEIGHT),
            name=name,
            next=following_page(answer.headers.get("link", "")),
            is_cut=graph.is_cut or drawn.is_cut,
            streams=len(graph.nodes),
            is_folded=_is_folded(drawn),
            opening=lambda key: urlencode({**here, "open": [*opened, key]}, doseq=True),
            closed=urlencode(here) if opened else None,
            watched=watched[:WATCHED],
        )


def _is_folded(drawn: Folded) -> bool:
    return any(len(members) > 1 for members in drawn.boxes.values())


def _box(key: str, members: list[str], graph: Graph) -> Box:
    """Return how a box looks; one of several streams is derived if all of them are."""
    first = graph.nodes[members[0]]
    if len(members) == 1 and key == members[0]:
        name = first.name
        return Box(
            first.service_object,
            first.stream,
            first.stream,
            name,
            first.is_derived,
            first.is_ours,
            "",
        )
    nodes = [graph.nodes[each] for each in members]
    devices = len({each.service_object for each in nodes})
    is_like = key.startswith(LIKE)
    return Box(
        "" if is_like else first.service_object,
        "",
        f"{first.name} and {devices - 1} alike" if devices > 1 else first.name,
        plural(len(members), "stream"),
        all(each.is_derived for each in nodes),
        all(each.is_ours for each in nodes),
        key,
    )
