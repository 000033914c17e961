"""The execution tree of a stream, before any data flows."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response

from api.http import authentication
from api.http.answers import answer
from api.http.authentication import needs
from api.resources.around import MAX_RELATED, understood
from api.services import Services
from servioticy.domain.access import Right, readable, visible_to
from servioticy.domain.graph import Graph
from servioticy.domain.model import StreamRef
from servioticy.domain.tree_preview import Node, Tree, grow

MAX_SHOWN = 20_000
"""Composites of a tree: as many as one update may compute."""


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}/tree`."""
    routes = Blueprint("trees", __name__)

    @routes.get("/<service_object>/streams/<stream>/tree")
    @needs(Right.READ)
    def tree(service_object: str, stream: str) -> Response:
        authentication.stream()
        caller = authentication.authenticated().caller
        below = services.ports.graph.related([service_object], upstream=False, most=MAX_RELATED)
        found, complete = understood(below, services)
        known = readable(found)
        visible = visible_to(caller, known)
        grown = grow(StreamRef(service_object, stream), Graph(known), MAX_SHOWN)
        more = {} if complete and grown.complete else {"complete": False}
        return answer(_shown(grown, visible) | more)

    return routes


def _shown(tree: Tree, visible: set[str]) -> dict[str, Any]:
    """Return the answer; what others keep private is counted and not named."""
    return {
        "stream": str(tree.origin),
        "depth": tree.depth,
        "computations": tree.computations,
        "mostComputations": tree.most_computations,
        "levels": [
            [_node(each, visible) for each in level if each.stream.service_object in visible]
            for level in tree.levels
        ],
        "hidden": sum(each.stream.service_object not in visible for each in tree.nodes),
        "diamonds": [
            str(each.stream)
            for each in tree.nodes
            if each.is_diamond and each.stream.service_object in visible
        ],
        "cycles": [
            [str(each) for each in loop if each.service_object in visible] for loop in tree.cycles
        ],
    }


def _node(node: Node, visible: set[str]) -> dict[str, Any]:
    source = str(node.source) if node.source.service_object in visible else None
    return {
        "stream": str(node.stream),
        "triggeredBy": source,
        "as": node.input,
        "arrivals": node.arrivals,
        "onlyRead": list(node.only_read),
    }
