"""The execution tree of a stream, before any data flows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from flask import Blueprint, Response

from api.documents.around import MAX_RELATED, understood
from api.http import authentication
from api.http.answers import answer
from api.http.authentication import needs
from api.services import Services
from servioticy.domain.access import Right, readable, seen_by
from servioticy.domain.graph import Graph
from servioticy.domain.model import StreamRef
from servioticy.domain.tree_preview import Node, Tree, grow
from servioticy.domain.windowed import as_one
from servioticy.large_components import LargeComponents

Sees: TypeAlias = Callable[[StreamRef], bool]

MAX_SHOWN = 20_000
"""Composites of a tree: as many as one update may compute."""


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}/tree`."""
    routes = Blueprint("trees", __name__)
    large = LargeComponents(services.ports.loads, services.now)

    @routes.get("/<service_object>/streams/<stream>/tree")
    @needs(Right.READ)
    def tree(service_object: str, stream: str) -> Response:
        address, _key = authentication.stream()
        caller = authentication.authenticated().caller
        below = services.ports.graph.related([service_object], upstream=False, most=MAX_RELATED)
        found, complete = understood(below, services)
        known = readable(found)
        sees = seen_by(caller, known)
        grown = grow(StreamRef(service_object, stream), Graph(map(as_one, known)), MAX_SHOWN)
        more: dict[str, Any] = {} if complete and grown.complete else {"complete": False}
        if address.key is not None and caller == address.tenant:
            more |= large.told(address.key)
        return answer(_shown(grown, sees) | more)

    return routes


def _shown(tree: Tree, sees: Sees) -> dict[str, Any]:
    """Return the answer; what others keep private is counted and not named."""
    return {
        "stream": str(tree.origin),
        "depth": tree.depth,
        "computations": tree.computations,
        "mostComputations": tree.most_computations,
        "levels": [
            [_node(each, sees) for each in level if sees(each.stream)] for level in tree.levels
        ],
        "hidden": sum(not sees(each.stream) for each in tree.nodes),
        "diamonds": [
            str(each.stream) for each in tree.nodes if each.is_diamond and sees(each.stream)
        ],
        "cycles": [[str(each) for each in loop if sees(each)] for loop in tree.cycles],
    }


def _node(node: Node, sees: Sees) -> dict[str, Any]:
    source = str(node.source) if sees(node.source) else None
    more: dict[str, Any] = {"borders": node.borders} if node.borders else {}
    if node.is_again:
        more["again"] = True
    return {
        "stream": str(node.stream),
        "triggeredBy": source,
        "as": node.input,
        "arrivals": node.arrivals,
        "onlyRead": list(node.only_read),
        **more,
    }
