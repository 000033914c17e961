"""Which streams are computed from which, around one Service Object: what a picture of it shows.

Unlike a tree it has each stream once and every way to it, and nothing of how an update would go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from servioticy.domain.model import ServiceObject, StreamRef


class Surroundings(NamedTuple):
    """Composites with what they are computed from."""

    computed_from: dict[StreamRef, list[StreamRef]]
    """the nearest first"""
    complete: bool
    """whether that is all"""


def surroundings(service_object: str, known: Iterable[ServiceObject], most: int) -> Surroundings:
    """Return what its streams are computed from themselves, and all that is computed from them.

    `known` has it and all that is computed from it. Of so many sources, each counted for each
    reader, those are told that come first.
    """
    readers: dict[StreamRef, dict[StreamRef, None]] = {}
    own: dict[StreamRef, None] = {}
    found: dict[StreamRef, dict[StreamRef, None]] = {}
    for each in known:
        if each.id == service_object:
            own = dict.fromkeys(stream.ref for stream in each.definition.streams)
        for source, composite in _edges(each):
            readers.setdefault(source, {})[composite] = None
            if each.id == service_object and most:
                most -= source not in found.setdefault(composite, {})
                found[composite][source] = None
    waiting, seen = deque(own), set(own)
    while waiting and most:
        source = waiting.popleft()
        for composite in readers.get(source, ()):
            if most:
                most -= source not in found.setdefault(composite, {})
                found[composite][source] = None
            if composite not in seen:
                seen.add(composite)
                waiting.append(composite)
    return Surroundings({each: list(sources) for each, sources in found.items()}, most > 0)


def _edges(service_object: ServiceObject) -> Iterator[tuple[StreamRef, StreamRef]]:
    """Yield each stream that one of its streams is computed from, with that."""
    for stream in service_object.definition.streams:
        if stream.composite is None:
            continue
        for source in stream.composite.inputs:
            for member in source.members:
                if member != stream.ref:
                    yield member, stream.ref
