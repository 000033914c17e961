"""Removing from memory what was deleted or erased, piece by piece."""

from __future__ import annotations

from memory.state import Purge, State


def purge(state: State, partition: int, most: int, most_bytes: int) -> int | None:
    """Remove a piece of what was deleted or erased here; whose it was. None: nothing is left."""
    left = [each for each in state.purge if each.partition == partition]
    if not left:
        return None
    first = min(left, key=lambda each: each.stored_as is None)
    if first.stored_as is not None:
        _purge_stored(state, first, first.stored_as, most, most_bytes)
    else:
        _purge_service_object(state, first, first.service_object or "", most)
    return first.tenant


def _purge_stored(state: State, entry: Purge, number: int, most: int, most_bytes: int) -> None:
    rows = sorted(each for each in state.updates if each[0] == number)[:most]
    for key in rows:
        if most_bytes <= 0:
            break
        most_bytes -= len(state.updates.pop(key)[1].document)
    kept = [each for each in state.kept_entries if each[0] == number][:most]
    for key in kept if not rows else ():
        del state.kept_entries[key]
    if not rows and not kept:
        state.states.pop(number, None)
        state.taken_back.pop(number, None)
        state.processor_us.pop(number, None)
        state.verdicts = {key: row for key, row in state.verdicts.items() if key[0] != number}
        state.superseded = [row for row in state.superseded if row[1].stream_id != number]
        state.purge.remove(entry)


def _purge_service_object(state: State, entry: Purge, service_object: str, most: int) -> None:
    own = next((ref for ref in state.streams if ref[0] == service_object), None)
    edges = [
        each
        for each in state.edges
        if (each.source == own if own else each.reader == service_object)
    ]
    reads = [key for key in state.outside_readers if key[0] == service_object]
    versions = [each for each in state.definitions if each[0] == service_object]
    if reads:
        for read in reads[:most]:
            del state.outside_readers[read]
    elif edges:
        for each in edges[:most]:
            state.edges.remove(each)
    elif own is not None:
        stored_as = state.stored_as(state.streams.pop(own))
        state.purge.append(Purge(entry.partition, entry.tenant, stored_as=stored_as))
    elif versions:
        for key in versions[:most]:
            del state.definitions[key]
    else:
        state.purge.remove(entry)
