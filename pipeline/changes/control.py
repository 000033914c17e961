"""Control records: what changes the meaning of the log, exactly at its place in it.

Each is a transaction of its own with the progress past it; doing one twice is harmless.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, assert_never

from pipeline.changes import revoking
from pipeline.state.partition import Partition
from servioticy.domain.access import private
from servioticy.domain.records import (
    AcquireRecord,
    ControlRecord,
    DefinitionRecord,
    DeletionRecord,
    ErasureRecord,
    GrantRecord,
    ReleaseRecord,
    RevocationRecord,
)
from servioticy.ports.output import Output
from servioticy.ports.partition_store import (
    Activate,
    Allow,
    Batch,
    Delete,
    Effect,
    Erase,
    PutOff,
    Release,
    Revoke,
    StoredVerdict,
)

POLL_SECONDS = 0.005


class _Change(NamedTuple):
    """What a control record changes."""

    effect: Effect | None
    """In the store, with the progress past the record."""
    forget: Callable[[], None]
    """Makes the partition forget what is not so any more; it is loaded when needed."""
    verdicts: Sequence[StoredVerdict] = ()
    """Of composites that may read less from here on."""


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

    def apply(self, record: ControlRecord, offset: int) -> None:
        """Let the record at this offset take effect, and store that it has."""
        change = self._change(record)
        self._partition.commit(lambda first_offset: self._batch(change, first_offset, offset + 1))
        change.forget()

    def apply_late(self, record: ControlRecord, late: PutOff) -> None:
        """Let a record take effect that had been put off: progress is past it already."""
        change = self._change(record)
        self._partition.commit(
            lambda first_offset: self._batch(change, first_offset, first_offset, (late.offset,))
        )
        change.forget()

    def _batch(
        self,
        change: _Change,
        first_offset: int,
        next_offset: int,
        taken_up: tuple[int, ...] = (),
    ) -> Batch:
        return Batch(
            self._partition.number,
            first_offset,
            next_offset,
            self._output.acknowledged,
            forwarded=self._partition.forwarded_offsets,
            verdicts=change.verdicts,
            effect=change.effect,
            taken_up=taken_up,
        )

    def _change(self, record: ControlRecord) -> _Change:
        match record:
            case DefinitionRecord():
                return self._define(record)
            case DeletionRecord():
                return self._delete(record)
            case ErasureRecord():
                return self._erase(record)
            case GrantRecord():
                return self._grant(record)
            case RevocationRecord():
                return self._revoke(record)
            case ReleaseRecord():
                return self._release(record)
            case AcquireRecord():
                return self._acquire(record)
            case unknown:
                assert_never(unknown)

    def _define(self, record: DefinitionRecord) -> _Change:
        effect = Activate(record.service_object, record.version, record.change)
        forget = partial(self._partition.reload, record.service_object)
        before = self._partition.in_force(record.service_object)
        if before is None or not before.definition.public:
            return _Change(effect, forget)
        after = self._partition.store.changed(effect)
        told = revoking.verdicts(self._partition, before, after) if after else ()
        return _Change(effect, forget, told)

    def _grant(self, record: GrantRecord) -> _Change:
        forget = partial(self._partition.reload, record.service_object)
        return _Change(Allow(record.grant), forget)

    def _revoke(self, record: RevocationRecord) -> _Change:
        before = self._partition.in_force(record.service_object)
        forget = partial(self._partition.reload, record.service_object)
        if before is None:
            return _Change(Revoke(record.grant), forget)
        left = tuple(each for each in before.grants if each.id != record.grant)
        told = revoking.verdicts(self._partition, before, replace(before, grants=left))
        return _Change(Revoke(record.grant), forget, told)

    def _delete(self, record: DeletionRecord) -> _Change:
        self._output.flush()  # what goes from the store could not be emitted again after a crash
        effect = Delete(record.service_object)
        forget = partial(self._partition.reload_purged, record.service_object)
        before = self._partition.in_force(record.service_object)
        told = revoking.verdicts(self._partition, before, private(before)) if before else ()
        return _Change(effect, forget, told)

    def _erase(self, record: ErasureRecord) -> _Change:
        self._output.flush()  # as before a deletion
        effect = Erase(record.service_object, record.stream, record.change)
        # Its updates are stored under another number from now on.
        return _Change(effect, partial(self._partition.reload_purged, record.service_object))

    def _release(self, record: ReleaseRecord) -> _Change:
        # What would be emitted again after a crash would come behind what the new partition emits.
        self._output.flush()
        effect = Release(record.service_objects, record.to_partition)
        return _Change(effect, self._forgetting(record.service_objects))

    def _acquire(self, record: AcquireRecord) -> _Change:
        """Wait until the old partition has stored everything before its release record.

        Changes are made one at a time and each releases before it acquires, so of two
        partitions that wait for each other one waits for an earlier change: no deadlock.
        """
        source, store = record.from_partition, self._partition.store
        while store.all_progress().get(source, 0) <= record.release_offset:
            self._sleep(POLL_SECONDS)
        return _Change(None, self._forgetting(record.service_objects))

    def _forgetting(self, service_objects: tuple[str, ...]) -> Callable[[], None]:
        return partial(self._partition.forget, service_objects, last_updates=True)
