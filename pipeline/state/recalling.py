"""Asking the store for last updates, of a tenant's own streams and of inputs from outside; and for
what history has of what operators read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pipeline.growth import Keeping
from servioticy.domain.evaluators.past import PastKey, PastUpdate, answer
from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import InputRef, LastUpdate, StreamRef
from servioticy.ports.kept_entries import KeptValue
from servioticy.ports.partition_store import PartitionStore
from servioticy.ports.past import MAX_TOGETHER, WantedPast


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
    keys: Sequence[tuple[KnownStream, PastKey]],
    graph: Graph,
    store: PartitionStore,
    room: int = MAX_TOGETHER,
) -> tuple[dict[tuple[KnownStream, PastKey], KeptValue | None], bool]:
    """What history has of what these composites read, under their keys; whether there was room.

    None where it is too much; and of streams of others, whose history is not at this place. What
    several ask for alike is asked for once.
    """
    found: dict[tuple[KnownStream, PastKey], KeptValue | None] = dict.fromkeys(keys)
    asked: dict[tuple[PastKey, WantedPast], list[tuple[KnownStream, PastKey]]] = {}
    named: list[Mapping[int, str]] = []
    for composite, key in found:
        wanted = key.wanted
        numbers = _numbers(composite, wanted.streams, graph)
        if numbers is None:
            continue
        alike = asked.setdefault((key, WantedPast(tuple(numbers), *wanted[1:])), [])
        if not alike:
            named.append(numbers)
        alike.append((composite, key))
    told = store.past([span for _, span in asked], room)
    for alike, names, updates in zip(asked.values(), named, told.answers, strict=True):
        if updates is not None:
            past = [PastUpdate(names[n], at, document) for n, at, document in updates]
            found.update(dict.fromkeys(alike, KeptValue(answer(past))))
    return found, told.is_all


def room_left(known: Keeping) -> int:
    """How many more bytes may be told of history, beside what is known of it."""
    values = {
        id(each): len(each.value)
        for entries in known.values()
        for key, each in entries.items()
        if each is not None and isinstance(key, PastKey)
    }
    return max(0, MAX_TOGETHER - sum(values.values()))


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
