"""What a tenant is told about the execution trees that a document is part of."""

from __future__ import annotations

from itertools import islice

import orjson

from api.documents.around import MAX_RELATED, understood
from api.services import Services
from servioticy.domain.access import readable, seen_by
from servioticy.domain.documents.asked_of_windows import asked_of_windows
from servioticy.domain.documents.dialects import version_warning
from servioticy.domain.documents.filters_that_pass import filters_that_pass
from servioticy.domain.findings import findings
from servioticy.domain.graph import Graph
from servioticy.domain.model import Definition, ServiceObject, StreamRef
from servioticy.domain.windowed import as_one
from servioticy.ports.stream_graph import Relatives

MAX_WARNINGS = 50
NEW = 2**62
"""Order of creation of what is only being created."""


def warnings(
    definition: Definition, document: bytes, caller: int, services: Services
) -> dict[str, list[str]]:
    """`warnings`, if there are any."""
    found = version_warning(orjson.loads(document))
    if any(each.composite for each in definition.streams):
        found += islice(filters_that_pass(definition), MAX_WARNINGS)
        found += islice(asked_of_windows(definition), MAX_WARNINGS)
        found += _of_trees(definition, caller, services)
    return {"warnings": found} if found else {}


def _of_trees(definition: Definition, caller: int, services: Services) -> list[str]:
    related = _around(definition, services)
    others = [each for each in related.found if each.id != definition.id]
    before = next((each for each in related.found if each.id == definition.id), None)
    known, complete = understood(Relatives(others, related.complete), services)
    itself = ServiceObject(definition, caller, 0, before.sequence if before else NEW, {})
    everything = readable([*known, itself])
    sees = seen_by(caller, everything)

    def name(ref: StreamRef) -> str:
        return str(ref) if sees(ref) else "a stream of another tenant"

    simple = [
        each.ref
        for service_object in everything
        for each in service_object.definition.streams
        if each.composite is None
    ]
    found = findings(definition, Graph(map(as_one, everything)), simple, name)
    if len(found) > MAX_WARNINGS:
        found[MAX_WARNINGS:] = [f"and {len(found) - MAX_WARNINGS} more"]
    if not complete:
        found.append(
            f"only {len(known)} of the Service Objects around it were looked at: "
            "they are many or large"
        )
    return found


def _around(definition: Definition, services: Services) -> Relatives:
    """Return what it is computed from, and what is computed from it."""
    graph = services.ports.graph
    sources = {member for group in definition.groups for member in group.service_objects}
    above = graph.related(sources, upstream=True, most=MAX_RELATED)
    below = graph.related([definition.id], upstream=False, most=MAX_RELATED)
    found = {each.id: each for each in [*above.found, *below.found]}
    return Relatives(list(found.values()), above.complete and below.complete)
