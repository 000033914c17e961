"""Why an input of a computation was null: what it reads is deleted, closed, or has never sent."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from api.services import Services
from ingest.hints import MOST_NAMED, short
from servioticy.domain.model import Composite, Input, Stream, Timestamp

MOST_MEMBERS = 200
"""Of a group that are looked at."""


def told(
    inputs: Mapping[str, Timestamp | None], computed: Stream, tenant: int, services: Services
) -> str:
    """Return what to tell of the inputs that were null, by the document in force; else nothing.

    Its own last output is none of them: there is none before the first.
    """
    composite = computed.composite
    if composite is None:
        return ""
    without = [each for each in _others(composite) if inputs.get(each.name, 0) is None]
    whys = [
        f"{short(each.name)} had no update: {_why(each, tenant, services)}" for each in without
    ]
    more = [f"and {len(whys) - MOST_NAMED} more inputs"] if len(whys) > MOST_NAMED else []
    return "; ".join(whys[:MOST_NAMED] + more)


def _others(composite: Composite) -> list[Input]:
    return [each for number, each in enumerate(composite.inputs) if number != composite.own]


def _why(source: Input, tenant: int, services: Services) -> str:
    members = list(islice(source.members, MOST_MEMBERS))
    there = services.ports.graph.nodes({each.service_object for each in members})
    gone = [each.service_object for each in members if each.service_object not in there]
    closed = [
        each.service_object
        for each in members
        if (node := there.get(each.service_object)) is not None
        and not node.granted.may_derive(tenant, each.stream)
    ]
    whys = []
    if gone:
        whys.append(f"{_listed(gone)} {'was' if len(gone) == 1 else 'were'} deleted")
    if closed:
        whys.append(f"{_listed(closed)} may not be read any more")
    if len(gone) + len(closed) < len(source.members):
        whys.append(f"{'the rest' if whys else 'what it reads'} had sent nothing by then")
    return ", ".join(whys) or "it reads nothing"


def _listed(ids: list[str]) -> str:
    more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
    return ", ".join(ids[:MOST_NAMED]) + more
