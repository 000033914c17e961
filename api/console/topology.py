"""The graph of the tenant's streams: what devices send, and all that is made of it."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from flask import Flask, g, render_template, request

from api.console.asking import Api
from api.console.devices import following_page
from api.console.documents import streams_of
from api.console.folding import Folded, folded, is_like
from api.console.showing import plural
from api.console.streams import HARMLESS
from servioticy.domain.console import ROOT
from servioticy.domain.layout import HEIGHT, WIDTH, Edge, laid_out
from servioticy.domain.verdicts import EMITTED

OBJECTS = 50
"""Service Objects on a page; what is made of their streams comes with them."""
MOST = 500
"""Boxes on a page."""
GATHERED = 20_000
"""Streams that are looked at for them."""
EDGES = 50_000
"""Of what is computed from what between these."""
SECONDS = 4.0
"""So long they are looked for."""
WATCHED = 50
"""Service Objects whose updates a page counts: a tenant may watch 100 at a time."""
LINES = 2_000
"""Between boxes."""
IN_WORDS = 500
"""Of these lines."""
OPENED = 20
"""Boxes that are not folded, as their addresses say: those that were opened last."""
ALONE = 200
"""Streams that are looked for and found stand alone; of more their boxes tell how many."""
SOURCES = 200
"""Streams that a stream that is found is computed from itself, of which a page tells."""


INSIDE = 2_000
"""Derived streams in folded boxes of which a page is told, as a box has their colours."""


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
    is_found: bool
    """whether it is looked for, or has something that is"""
    inside: Mapping[str, list[str]]
    """of ours that are derived in it, by Service Object, as many as a page is told of"""


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
        self._documents: dict[str, _Document | None] = {}
        self.nodes: dict[str, Node] = {}
        self.edges: set[Edge] = set()
        self.found: set[str] = set()
        """streams that are looked for by their names"""
        self.is_cut = False
        """Whether there is more than is looked at."""
        self._until = time.monotonic() + SECONDS

    def add(self, service_object: str) -> None:
        """Add the streams of one of ours, and what is computed from them. Raises ApiRefused."""
        self._add_below(self._streams(service_object), self._computed_from(service_object))

    def add_found(self, service_object: str, part: str) -> None:
        """Add the streams of one of ours that have this in their names.

        With all that is computed from them, and what they are computed from themselves. Raises
        ApiRefused.
        """
        named = [
            each
            for each in self._streams(service_object)
            if part in each.partition("/")[2].lower()
        ]
        streams = [each for each in named if self._has(each)]
        self.found.update(streams)
        computed_from = self._computed_from(service_object)
        self._add_below(streams, computed_from)
        for each in streams:
            sources = computed_from.get(each, ())
            self.is_cut |= len(sources) > SOURCES
            self._add_edges((source, each) for source in sources[:SOURCES] if self._has(source))

    def _streams(self, service_object: str) -> list[str]:
        document = self._document(service_object)
        return [f"{service_object}/{each}" for each in document.is_derived] if document else []

    def _add_below(self, streams: Iterable[str], computed_from: Mapping[str, list[str]]) -> None:
        """Add these, and what is computed from them."""
        readers = defaultdict(list)
        for reader, sources in computed_from.items():
            for source in sources:
                readers[source].append(reader)
        waiting = deque(each for each in streams if self._has(each))
        seen = set(waiting)
        while waiting:
            source = waiting.popleft()
            below = [each for each in readers[source] if self._has(each)]
            self._add_edges((source, each) for each in below)
            waiting += [each for each in below if each not in seen]
            seen.update(below)

    def _add_edges(self, edges: Iterable[Edge]) -> None:
        if len(self.edges) >= EDGES:
            self.is_cut = True
            return
        self.edges.update(edges)

    def _computed_from(self, service_object: str) -> dict[str, list[str]]:
        """Return composites around it with their sources; nothing where there is no more time."""
        if self._is_over():
            return {}
        graph = self._api.get(service_object, "graph")
        self.is_cut |= not graph.get("complete", True)
        found: dict[str, list[str]] = graph["computedFrom"]
        return found

    def _has(self, stream: str) -> bool:
        """Return whether the stream has its place on the page; the first ones get one."""
        if stream in self.nodes:
            return True
        service_object, _, name = stream.partition("/")
        if len(self.nodes) >= GATHERED or (
            service_object not in self._documents and self._is_over()
        ):
            self.is_cut = True
            return False
        document = self._document(service_object)
        is_derived = document is None or document.is_derived.get(name, False)
        title = (document.name if document else "") or service_object
        self.nodes[stream] = Node(service_object, name, title, is_derived, document is not None)
        return True

    def _is_over(self) -> bool:
        is_over = time.monotonic() > self._until
        self.is_cut |= is_over
        return is_over

    def _document(self, service_object: str) -> _Document | None:
        if service_object not in self._documents:
            found = self._api.found(service_object)
            self._documents[service_object] = (
                None
                if found is None
                else _Document(
                    str(found.get("name") or ""),
                    {each.name: each.is_derived for each in streams_of(found)},
                )
            )
        return self._documents[service_object]


class _Document(NamedTuple):
    """What is asked of a document, again and again."""

    name: str
    is_derived: Mapping[str, bool]
    """of its streams, those first that a device sends"""


def add(app: Flask) -> None:
    """`/console/topology`."""

    @app.get(f"{ROOT}/topology")
    def topology() -> str:
        api: Api = g.signed.api
        looked_for = {
            each: value
            for each in ("name", "streamName", "cursor")
            if (value := request.args.get(each, "").strip())
        }
        stream = looked_for.get("streamName", "")
        answer = api.ask("GET", "service-objects", query={"limit": OBJECTS, **looked_for})
        graph = Graph(api)
        for each in answer.value["data"]:
            if stream:
                graph.add_found(each["id"], stream.lower())
            else:
                graph.add(each["id"])
        devices = {each.service_object for each in graph.nodes.values()}
        opened = [
            each
            for each in dict.fromkeys(request.args.getlist("open"))
            if each in devices or is_like(each)
        ][-OPENED:]
        alone = graph.found if len(graph.found) <= ALONE else ()
        drawn = folded(
            graph.nodes, graph.edges, lambda key: key.partition("/")[0], set(opened), MOST, alone
        )
        inside = shared_out(map(len, drawn.boxes.values()), INSIDE)
        boxes = {key: _box(key, members, graph, inside) for key, members in drawn.boxes.items()}
        lines = sorted(drawn.edges)[:LINES]
        layout = laid_out(boxes, lines)
        watched = list(dict.fromkeys(n.service_object for n in graph.nodes.values() if n.is_ours))
        return render_template(
            "topology.html",
            boxes=[(boxes[key], at) for key, at in layout.boxes.items()],
            layout=layout,
            edges=[(boxes[left], boxes[right]) for left, right in lines[:IN_WORDS]],
            lines=len(lines),
            box=(WIDTH, HEIGHT),
            name=looked_for.get("name", ""),
            stream=stream,
            found=[boxes[each] for each in boxes if each in graph.found],
            found_count=len(graph.found),
            next=following_page(answer.headers.get("link", "")),
            is_cut=graph.is_cut or drawn.is_cut or len(lines) < len(drawn.edges),
            streams=len(graph.nodes),
            is_folded=_is_folded(drawn),
            opening=lambda key: urlencode(
                {**looked_for, "open": [*opened, key][-OPENED:]}, doseq=True
            ),
            closed=urlencode(looked_for) if opened else None,
            watched=watched[:WATCHED],
            verdicts={"made": EMITTED, "harmless": sorted(HARMLESS)},
        )


def shared_out(sizes: Iterable[int], most: int) -> int:
    """Return how many of each box are told, so that all together are no more than `most`.

    What small boxes leave the others have.
    """
    left = most
    several = sorted(size for size in sizes if size > 1)
    for number, size in enumerate(several):
        each = left // (len(several) - number)
        if size > each:
            return each
        left -= size
    return most


def _is_folded(drawn: Folded) -> bool:
    return any(len(members) > 1 for members in drawn.boxes.values())


def _box(key: str, members: list[str], graph: Graph, inside: int) -> Box:
    """Return how a box looks; one of several streams is derived if all of them are.

    `inside`: of so many streams of a box it is told which they are.
    """
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
            key in graph.found,
            {},
        )
    nodes = [graph.nodes[each] for each in members]
    devices = len({each.service_object for each in nodes})
    is_one = not is_like(key)
    found = sum(each in graph.found for each in members)
    return Box(
        first.service_object if is_one else "",
        "",
        f"{first.name} and {devices - 1} alike" if devices > 1 else first.name,
        f"{found:,} of {len(members):,} found" if found else plural(len(members), "stream"),
        all(each.is_derived for each in nodes),
        all(each.is_ours for each in nodes),
        key,
        found > 0,
        _by_object([each for each in nodes if each.is_derived and each.is_ours][:inside]),
    )


def _by_object(nodes: Iterable[Node]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for each in nodes:
        found[each.service_object].append(each.stream)
    return dict(found)
