"""What a control record brings about in memory, below the lock of its batch."""

from __future__ import annotations

from typing import assert_never

from memory import borders
from memory.state import GONE, Purge, State
from servioticy.ports.effects import (
    Activate,
    ActivateAll,
    Allow,
    BeginInputs,
    Delete,
    Effect,
    EndInputs,
    Erase,
    Read,
    Release,
    Revoke,
)


def take_effect(state: State, effect: Effect, partition: int) -> None:
    """Bring it about in this partition."""
    match effect:
        case Activate():
            _activate(state, effect, partition)
        case ActivateAll(changes):
            for each in changes:
                _activate(state, each, partition)
        case Delete():
            _delete(state, effect, partition)
        case Erase():
            _erase(state, effect, partition)
        case Allow(grant):
            if grant in state.grants:
                state.grants[grant].active = True
        case Revoke(grant):
            state.grants.pop(grant, None)
        case Release():
            _release(state, effect, partition)
        case Read():
            borders.read(state, effect, partition)
        case BeginInputs():
            borders.begin(state, effect, partition)
        case EndInputs():
            borders.end(state, effect, partition)
        case unknown:
            assert_never(unknown)


def _activate(state: State, effect: Activate, partition: int) -> None:
    row = state.service_objects.get(effect.service_object)
    if row is None:
        return
    first = row.active_version is None and row.active_change == 0
    if row.active_change < effect.change or first:
        row.active_version, row.active_change = effect.version, effect.change
        borders.name(state, effect, row.tenant, partition)


def _release(state: State, effect: Release, partition: int) -> None:
    for each in effect.service_objects:
        row = state.service_objects.get(each)
        if row is not None and row.owner_partition == partition:
            row.owner_partition = effect.to_partition


def _delete(state: State, effect: Delete, partition: int) -> None:
    """Nothing of it can be read any more, and its id is used up; the rest is to be removed."""
    row = state.service_objects.get(effect.service_object)
    if row is None:
        return
    row.active_version, row.active_change = None, GONE
    row.component = f"deleted {row.id}"
    borders.delete(state, row.id, row.tenant, partition)
    for each in [g for g in state.grants.values() if g.service_object == row.id]:
        del state.grants[each.grant.id]
    if not any(each.service_object == row.id for each in state.purge):
        state.purge.append(Purge(partition, row.tenant, row.id))


def _erase(state: State, effect: Erase, partition: int) -> None:
    """What comes is stored under another number, unless a later change has erased already."""
    number = state.streams.get((effect.service_object, effect.stream))
    if number is None or 0 < effect.change <= state.erased_by.get(number, 0):
        return
    before = state.stored_as(number)
    state.last_stream += 1
    state.erased_by[number], state.after_erasure[number] = effect.change, state.last_stream
    state.states.pop(before, None)
    state.taken_back.pop(before, None)
    state.verdicts = {
        (state.last_stream if key[0] == before else key[0], key[1]): row
        for key, row in state.verdicts.items()
    }
    if before in state.processor_us:
        state.processor_us[state.last_stream] = state.processor_us.pop(before)
    tenant = state.service_objects[effect.service_object].tenant
    state.purge.append(Purge(partition, tenant, stored_as=before))
