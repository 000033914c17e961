"""Removing from memory updates that are older than they are kept, piece by piece."""

from __future__ import annotations

from memory.state import State
from servioticy.ports.expiry import Expired


def expire(
    state: State, tenant: int, after: int, streams: int, bounds: tuple[int, int]
) -> Expired:
    """Remove a piece of what has expired of a tenant's next streams.

    `bounds` are how many updates at most, and how many bytes.
    """
    own = {number: ref for ref, number in state.streams.items()}
    whose = {each: state.service_objects[ref[0]].tenant for each, ref in own.items()}
    looked = sorted(each for each in own if each > after and whose[each] == tenant)[:streams]
    most, most_bytes = bounds
    removed = size = 0
    for number in map(state.stored_as, looked):
        begin = state.kept_from(number)
        times = sorted(at for stream, at in state.updates if stream == number)
        for at in times[:-1]:
            partition, row = state.updates[number, at]
            is_emitted = row.offset < state.progress[partition].emitted_offset
            waits = any(
                (each, key.offset) == (partition, row.offset) for each, key in state.put_off
            )
            if at < begin and is_emitted and not waits and removed < most and size < most_bytes:
                del state.updates[number, at]
                removed, size = removed + 1, size + len(row.document)
        back = state.taken_back.get(number)
        if back is not None and times and back.timestamp < min(begin, times[-1]):
            del state.taken_back[number]
    return Expired(after if removed else max(looked, default=None), removed, size)
