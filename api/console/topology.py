"""The graph of the tenant's streams: what devices send, and all that is made of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from flask import Flask, g, render_template, request

from api.console.asking import Api
from api.console.devices import following_page
from api.console.documents import streams_of
from api.console.layout import HEIGHT, WIDTH, Edge, laid_out
from servioticy.domain.console import ROOT

OBJECTS = 50
"""Service Objects on a page; what is made of their streams comes with them."""
MOST = 500
"""Streams on a page."""
WATCHED = 50
"""Service Objects whose updates a page counts: a tenant may watch 100 at a time."""


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
        """Whether there is more than a page shows."""

    def add(self, service_object: str) -> None:
        """Add the streams of one of ours, and what is computed from them. Raises ApiRefused."""
        for stream in streams_of(self._document(service_object) or {}):
            if self._has(f"{service_object}/{stream.name}"):
                self._add_tree(service_object, stream.name)

    def _add_tree(self, service_object: str, stream: str) -> None:
        tree = self._api.get(service_object, "streams", stream, "tree")
        for node in (each for level in tree["levels"] for each in level):
            if self._has(node["triggeredBy"]) and self._has(node["stream"]):
                self.edges.add((node["triggeredBy"], node["stream"]))

    def _has(self, stream: str) -> bool:
        """Return whether the stream has its place on the page; the first ones get one."""
        if stream in self.nodes:
            return True
        if len(self.nodes) >= MOST:
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
        layout = laid_out(graph.nodes, graph.edges)
        watched = list(dict.fromkeys(n.service_object for n in graph.nodes.values() if n.is_ours))
        return render_template(
            "topology.html",
            nodes=[(graph.nodes[key], box) for key, box in layout.boxes.items()],
            layout=layout,
            edges=[(graph.nodes[left], graph.nodes[right]) for left, right in sorted(graph.edges)],
            box=(WIDTH, HEIGHT),
            name=name,
            next=following_page(answer.headers.get("link", "")),
            is_cut=graph.is_cut,
            watched=watched[:WATCHED],
        )
