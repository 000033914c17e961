"""Control records: what changes the meaning of the log, exactly at its place in it.

Each is a transaction of its own with the progress past it, but for definitions of a fleet, which
take effect together; doing one twice is harmless. Those by which others read: `reading.py`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import NamedTuple, assert_never

from pipeline.changes.change import Change
from pipeline.changes.reading import Inputs, Readers
from pipeline.state.partition import Partition
from pipeline.state.weights import weight
from servioticy.domain.access import Granted, granted, granted_of, private
from servioticy.domain.borders import kept, members
from servioticy.domain.model import Grant, ServiceObject, StreamRef
from servioticy.domain.pauses import finished
from servioticy.domain.records import (
    AcquireRecord,
    BackfillRecord,
    BeginRecord,
    ControlRecord,
    DefinitionRecord,
    DeletionRecord,
    EndRecord,
    ErasureRecord,
    GrantRecord,
    ReadingRecord,
    ReleaseRecord,
    RevocationRecord,
)
from servioticy.ports.batches import Batch
from servioticy.ports.effects import (
    Activate,
    ActivateAll,
    Allow,
    Delete,
    Erase,
    Release,
    Revoke,
)
from servioticy.ports.output import Output
from servioticy.ports.partition_store import ComponentMember
from servioticy.ports.put_off import PutOff, TreeKey

POLL_SECONDS = 0.005


class Together(NamedTuple):
    """What came of definitions that were to take effect together."""

    tenants: Sequence[int]
    """Whose those are that have taken effect, in order."""
    looked_at: Mapping[int, int]
    """By tenant, about how many bytes were read and understood for that: of others, too."""


class Control:
    """Lets the control records of one partition take effect.

    Each kind of record has one handler: it waits for what has to come before, and answers
    what the record changes.
    """

    def __init__(
        self, partition: Partition, output: Output, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._partition = partition
        self._output = output
        self._sleep = sleep
        self._readers = Readers(partition, output)
        self._inputs = Inputs(partition, output)

    def apply(self, record: ControlRecord, offset: int) -> None:
        """Let the record at this offset take effect, and store that it has."""
        change = self._change(record, offset)
        end = TreeKey(offset + 1)
        self._partition.commit(lambda begun: self._batch(change, begun, end))
        self._output.emit(end.offset, (), change.crossings)
        change.forget()

    def apply_together(
        self, offset: int, records: Iterable[DefinitionRecord], but: Set[int], most_bytes: int
    ) -> Together:
        """Let the first of these, the one at the offset and what follows it, take effect as one.

        Those with whom nothing changes but what is computed of their own streams: neither do they
        read others, nor is anything told to who reads them; and none of some tenants, nor those
        whose documents do not fit into so many bytes any more.
        """
        partition = self._partition
        asked = _each_once(records)
        components = partition.store.components([each.service_object for each in asked])
        here = {each.id: each for members in components for each in members}
        after = partition.store.changed(asked, most_bytes)
        effects: dict[str, Activate] = {}
        for each in asked:
            id_ = each.service_object
            found = after.get(id_)
            if found is None or found.tenant in but:
                break
            if not self._is_plain(here[id_], found):
                break
            effects[id_] = each
        looked_at = Counter[int]()
        for found in after.values():
            looked_at[found.tenant] += weight(found)
        if not effects:
            return Together((), looked_at)
        end = TreeKey(offset + len(effects))
        change = Change(ActivateAll(tuple(effects.values())), lambda: None)
        partition.commit(lambda begun: self._batch(change, begun, end))
        self._output.emit(end.offset, ())
        concerned = [some for some in components if any(each.id in effects for each in some)]
        partition.reload_all([each.id for some in concerned for each in some], effects)
        return Together([after[id_].tenant for id_ in effects], looked_at)

    def _is_plain(self, member: ComponentMember, after: ServiceObject) -> bool:
        """Whether it names no group, and none that is in force does, or tells who may read it."""
        if after.definition.groups or member.owner_partition != self._partition.number:
            return False
        before = self._partition.known(after.id)
        if member.version is None or before is None:
            return member.version is None
        return not before.inputs and granted_of(before) == granted_of(after)

    def prepare(self, record: ControlRecord) -> None:
        """Do what is to be done before a slice of it is, where it is done in slices."""
        if isinstance(record, BackfillRecord):
            self._settle()

    def change_of(self, record: ControlRecord, late: PutOff) -> Change:
        """Return what a record that had been put off changes, once that is stored."""
        return self._change(record, late.offset)

    def is_inside(self, change: Change, tenant: int) -> bool:
        """Whether it is a definition that concerns nobody but its tenant: no other is told of it,
        and nothing of others is read by it, or was."""
        effect = change.effect
        if not isinstance(effect, Activate):
            return False
        if change.crossings or change.outside or change.verdicts:
            return False
        before = self._partition.in_force(effect.service_object)
        if before is not None and before.inputs:
            return False
        read = dict.fromkeys([each.service_object for each in effect.members])
        owners = self._partition.store.owners(list(read))
        return all(owner == tenant for owner, _partition in owners.values())

    def apply_late(self, change: Change, late: PutOff) -> None:
        """Let it take effect: progress is past the record already.

        What it tells others is where it was sent when this returns.
        """
        self._partition.commit(lambda begun: self._batch(change, begun, begun, (late.key,)))
        if change.crossings:
            self._output.emit(self._partition.progress.offset, (), change.crossings)
            self._output.flush()
        change.forget()

    def _batch(
        self,
        change: Change,
        begun: TreeKey,
        end: TreeKey,
        taken_up: tuple[TreeKey, ...] = (),
    ) -> Batch:
        return Batch(
            self._partition.number,
            begun.offset,
            end.offset,
            self._output.acknowledged,
            forwarded=self._partition.forwarded_offsets,
            verdicts=change.verdicts,
            effect=change.effect,
            taken_up=taken_up,
            crossings=change.crossings,
            outside=change.outside,
            first_tree=begun.tree,
            next_tree=end.tree,
        )

    def _change(self, record: ControlRecord, offset: int) -> Change:
        match record:
            case DefinitionRecord():
                return self._define(record, offset)
            case DeletionRecord():
                return self._delete(record, offset)
            case ErasureRecord():
                return self._erase(record, offset)
            case BackfillRecord():
                return self._fill_in(record)
            case GrantRecord():
                return self._grant(record, offset)
            case RevocationRecord():
                return self._revoke(record, offset)
            case ReleaseRecord():
                return self._release(record)
            case AcquireRecord():
                return self._acquire(record)
            case ReadingRecord():
                return self._readers.read(record, offset)
            case BeginRecord():
                return self._inputs.begin(record, offset)
            case EndRecord():
                return self._inputs.end(record, offset)
            case unknown:
                assert_never(unknown)

    def _define(self, record: DefinitionRecord, offset: int) -> Change:
        effect = Activate(record.service_object, record.version, record.change)
        before = self._partition.in_force(record.service_object)
        after = self._partition.store.changed([effect]).get(record.service_object)
        if after is not None:
            definition = after.definition
            effect = effect._replace(members=members(definition), kept=kept(definition))
        inputs = dict.fromkeys((*effect.members, *(before.inputs if before else ())))
        change = Change(effect, partial(self._reload, record.service_object, inputs))
        if before is None or after is None or granted_of(before) == granted_of(after):
            return change
        return self._readers.changed(change, before, granted_of(after), offset)

    def _grant(self, record: GrantRecord, offset: int) -> Change:
        change = Change(Allow(record.grant), self._reloading(record.service_object))
        before = self._partition.in_force(record.service_object)
        new = self._partition.store.grant(record.grant)
        if before is None or new is None:
            return change
        grants = (*(each for each in before.grants if each.id != new.id), new)
        return self._readers.changed(change, before, _granted(before, grants), offset)

    def _revoke(self, record: RevocationRecord, offset: int) -> Change:
        change = Change(Revoke(record.grant), self._reloading(record.service_object))
        before = self._partition.in_force(record.service_object)
        if before is None:
            return change
        left = tuple(each for each in before.grants if each.id != record.grant)
        return self._readers.changed(change, before, _granted(before, left), offset)

    def _delete(self, record: DeletionRecord, offset: int) -> Change:
        self._output.flush()  # what goes from the store could not be emitted again after a crash
        before = self._partition.in_force(record.service_object)
        id_, inputs = record.service_object, before.inputs if before else ()
        change = Change(Delete(id_), partial(self._reload, id_, inputs, purged=True))
        if before is None:
            return change
        return self._readers.changed(change, before, granted_of(private(before)), offset)

    def _erase(self, record: ErasureRecord, offset: int) -> Change:
        self._output.flush()  # as before a deletion
        effect = Erase(record.service_object, record.stream, record.change)
        # Its updates are stored under another number from now on.
        change = Change(effect, partial(self._partition.reload_purged, record.service_object))
        before = self._partition.in_force(record.service_object)
        if before is None or not self._partition.store.erases(effect):
            return change
        return self._readers.erased(change, before, record.stream, offset)

    def _fill_in(self, record: BackfillRecord) -> Change:
        self._settle()
        # Of one that was put off there is nothing left to do.
        finished(self._partition.store.swapped(record.job, at_once=True))
        members = self._partition.store.component(record.service_object)
        return Change(None, self._forgetting(tuple(each.id for each in members)))

    def _settle(self) -> None:
        """Have noted that all is emitted: what takes its place is older than that, and is not to
        be emitted after a crash."""
        self._output.flush()
        self._partition.commit(lambda begun: self._batch(Change(None, _nothing), begun, begun))

    def _release(self, record: ReleaseRecord) -> Change:
        # What would be emitted again after a crash would come behind what the new partition emits.
        self._output.flush()
        effect = Release(record.service_objects, record.to_partition)
        return Change(effect, self._forgetting(record.service_objects))

    def _acquire(self, record: AcquireRecord) -> Change:
        """Wait until the old partition has stored everything before its release record.

        Changes are made one at a time and each releases before it acquires, so of two
        partitions that wait for each other one waits for an earlier change: no deadlock.
        """
        source, store = record.from_partition, self._partition.store
        while store.all_progress().get(source, 0) <= record.release_offset:
            self._sleep(POLL_SECONDS)
        return Change(None, self._forgetting(record.service_objects))

    def _forgetting(self, service_objects: tuple[str, ...]) -> Callable[[], None]:
        def forget() -> None:
            self._partition.forget(service_objects, last_updates=True)
            self._partition.channels.forget_all()

        return forget

    def _reloading(self, service_object: str) -> Callable[[], None]:
        return partial(self._partition.reload, service_object)

    def _reload(
        self, service_object: str, inputs: Iterable[StreamRef], *, purged: bool = False
    ) -> None:
        """It has changed, or gone, and with it what it reads of others."""
        if purged:
            self._partition.reload_purged(service_object)
        else:
            self._partition.reload(service_object)
        self._partition.channels.forget(inputs)
        if self._partition.awaiting:
            self._partition.count_waiting()


def _each_once(records: Iterable[DefinitionRecord]) -> list[Activate]:
    """The first of these, until one changes again: the store tells one state of each."""
    found: dict[str, Activate] = {}
    for each in records:
        if each.service_object in found:
            break
        found[each.service_object] = Activate(each.service_object, each.version, each.change)
    return list(found.values())


def _nothing() -> None:
    """Nothing is to be forgotten."""


def _granted(service_object: ServiceObject, grants: tuple[Grant, ...]) -> Granted:
    """What others are granted of it where these are its grants."""
    return granted(service_object.tenant, service_object.definition.public, grants)
