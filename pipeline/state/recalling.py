"""Asking the store for last updates: of a tenant's own streams, and of inputs from outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from servioticy.domain.graph import Graph
from servioticy.domain.model import InputRef, LastUpdate, StreamRef
from servioticy.ports.partition_store import PartitionStore


def asked_for(
    refs: Iterable[StreamRef], graph: Graph, store: PartitionStore
) -> Mapping[StreamRef, LastUpdate | None]:
    """The last updates of these streams; one query for those of each kind."""
    own, kept = {}, {}
    found: dict[StreamRef, LastUpdate | None] = {}
    for ref in refs:
        stream = graph.stream(ref)
        if not isinstance(ref, InputRef):
            own[ref] = stream.stream_id
        elif stream.keeper is None:
            found[ref] = None  # it is only ever a trigger
        else:
            kept[ref] = stream.keeper[1], ref.source
    if own:
        lasts = store.last_updates(own.values())
        found.update((ref, lasts.get(number)) for ref, number in own.items())
    if kept:
        inputs = store.last_inputs(kept.values())
        found.update((ref, inputs.get(key)) for ref, key in kept.items())
    return found
