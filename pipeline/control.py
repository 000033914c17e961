"""Control records: what changes the meaning of the log, exactly at its place in it.

Each is a transaction of its own with the progress past it; doing one twice is harmless.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from pipeline.state.partition import Partition
from servioticy.domain.model import StreamRef
from servioticy.domain.records import (
    AcquireRecord,
    ControlRecord,
    DefinitionRecord,
    DeletionRecord,
    ErasureRecord,
    ReleaseRecord,
)
from servioticy.ports.output import Output
from servioticy.ports.partition_store import Batch, PutOff

POLL_SECONDS = 0.005


class Control:
    """Lets the control records of one partition take effect."""

    def __init__(
        self, partition: Partition, output: Output, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._partition = partition
        self._output = output
        self._sleep = sleep

    def apply(self, record: ControlRecord, offset: int) -> None:
        """Let the record at this offset take effect, and store that it has."""
        self._prepare(record)
        self._partition.commit(
            lambda first_offset: _batch(
                record, first_offset, offset + 1, self._partition, self._output
            )
        )
        _forget(record, self._partition)

    def apply_late(self, record: ControlRecord, late: PutOff) -> None:
        """Let a record take effect that had been put off: progress is past it already."""
        self._prepare(record)
        self._partition.commit(
            lambda first_offset: replace(
                _batch(record, first_offset, first_offset, self._partition, self._output),
                taken_up=(late.offset,),
            )
        )
        _forget(record, self._partition)

    def _prepare(self, record: ControlRecord) -> None:
        if isinstance(record, AcquireRecord):
            _wait_for_release(record, self._partition, self._sleep)
        elif isinstance(record, DeletionRecord | ErasureRecord):
            # What goes from the store could not be emitted again after a crash.
            self._output.flush()


def _batch(
    record: ControlRecord,
    first_offset: int,
    next_offset: int,
    partition: Partition,
    output: Output,
) -> Batch:
    """What is stored of it, with the progress past it."""
    batch = Batch(
        partition.number,
        first_offset,
        next_offset,
        output.acknowledged,
        forwarded=partition.forwarded_offsets,
    )
    match record:
        case DefinitionRecord(service_object, version, change):
            return replace(batch, activate=(service_object, version, change))
        case DeletionRecord(service_object):
            return replace(batch, delete=service_object)
        case ErasureRecord(service_object, stream, change):
            return replace(batch, erase=(service_object, stream, change))
        case ReleaseRecord(service_objects, to_partition):
            return replace(batch, release=(service_objects, to_partition))
        case _:
            return batch


def _forget(record: ControlRecord, partition: Partition) -> None:
    """What the partition remembers and is not so any more; it is loaded when needed."""
    match record:
        case DefinitionRecord(service_object):
            partition.reload(service_object)
        case DeletionRecord(service_object):
            partition.reload(service_object)
        case ErasureRecord(service_object, stream):
            partition.forget_last(StreamRef(service_object, stream))
        case ReleaseRecord(service_objects) | AcquireRecord(service_objects):
            partition.forget(service_objects, last_updates=True)


def _wait_for_release(
    record: AcquireRecord, partition: Partition, sleep: Callable[[float], None]
) -> None:
    """Until the old partition has stored everything before its release record.

    Changes are made one at a time and each releases before it acquires, so of two
    partitions that wait for each other one waits for an earlier change: no deadlock.
    """
    while partition.store.all_progress().get(record.from_partition, 0) <= record.release_offset:
        sleep(POLL_SECONDS)
