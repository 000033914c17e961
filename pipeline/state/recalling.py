"""Asking the store for last updates, of a tenant's own streams and of inputs from outside; and for
what history has of what operators read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from servioticy.domain.evaluators.past import PastKey, PastUpdate, answer
from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import InputRef, LastUpdate, StreamRef
from servioticy.ports.kept_entries import KeptValue
from servioticy.ports.partition_store import PartitionStore
from servioticy.ports.past import WantedPast


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


def recalled_past(
    keys: Sequence[tuple[KnownStream, PastKey]], graph: Graph, store: PartitionStore
) -> dict[tuple[KnownStream, PastKey], KeptValue | None]:
    """What history has of what these composites read, under their keys.

    None where it is too much; and of streams of others, whose history is not at this place.
    """
    found: dict[tuple[KnownStream, PastKey], KeptValue | None] = dict.fromkeys(keys)
    asked: dict[tuple[KnownStream, PastKey], tuple[WantedPast, Mapping[int, str]]] = {}
    for composite, key in found:
        wanted = key.wanted
        numbers = _numbers(composite, wanted.streams, graph)
        if numbers is not None:
            span = WantedPast(tuple(numbers), *wanted[1:])
            asked[composite, key] = span, numbers
    answers = store.past([span for span, _ in asked.values()])
    for (each, (_, names)), updates in zip(asked.items(), answers, strict=True):
        if updates is not None:
            found[each] = KeptValue(
                answer([PastUpdate(names[n], at, document) for n, at, document in updates])
            )
    return found


def _numbers(
    composite: KnownStream, names: Iterable[str], graph: Graph
) -> Mapping[int, str] | None:
    """The names of streams that a composite reads, by their numbers; None: some are of others.

    One that does not exist has no updates.
    """
    read = composite.composite.inputs if composite.composite else ()
    refs = {str(ref): ref for each in read for ref in each.members}
    if any(isinstance(refs[each], InputRef) for each in names):
        return None
    return {graph.stream(refs[each]).stream_id: each for each in names if graph.knows(refs[each])}
