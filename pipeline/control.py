"""Control records: what changes the meaning of the log, exactly at its place in it.

Each is a transaction of its own with the progress past it; doing one twice is harmless.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from pipeline.partition import Partition
from servioticy.messaging.records import (
    AcquireRecord,
    ControlRecord,
    DefinitionRecord,
    DeletionRecord,
    ErasureRecord,
    ReleaseRecord,
)
from servioticy.ports import Batch, Output, PutOff

POLL_SECONDS = 0.005


def apply(
    record: ControlRecord,
    offset: int,
    partition: Partition,
    output: Output,
    sleep: Callable[[float], None] = time.sleep,
    late: PutOff | None = None,
) -> None:
    """Let the record take effect, and store that it has.

    `late`, it had been put off: progress is past it already.
    """
    if isinstance(record, AcquireRecord):
        _wait_for_release(record, partition, sleep)
    elif isinstance(record, DeletionRecord | ErasureRecord):
        output.flush()  # what goes from the store could not be emitted again after a crash
    partition.commit(
        lambda first_offset: _placed(
            _batch(record, first_offset, offset, partition, output), first_offset, late
        )
    )
    _forget(record, partition)


def _placed(batch: Batch, first_offset: int, late: PutOff | None) -> Batch:
    if late is None:
        return batch
    return replace(batch, next_offset=first_offset, taken_up=(late.offset,))


def _batch(
    record: ControlRecord, first_offset: int, offset: int, partition: Partition, output: Output
) -> Batch:
    """What is stored of it, with the progress past it."""
    batch = Batch(
        partition.number,
        first_offset,
        offset + 1,
        output.acknowledged,
        forwarded=partition.taken,
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
        case DeletionRecord(service_object) | ErasureRecord(service_object):
            # Updates of an erased stream are stored under another number from now on.
            partition.reload(service_object)
            partition.to_purge = True
        case ReleaseRecord(service_objects) | AcquireRecord(service_objects):
            partition.forget(service_objects, lasts=True)


def _wait_for_release(
    record: AcquireRecord, partition: Partition, sleep: Callable[[float], None]
) -> None:
    """Until the old partition has stored everything before its release record.

    Changes are made one at a time and each releases before it acquires, so of two
    partitions that wait for each other one waits for an earlier change: no deadlock.
    """
    while partition.store.all_progress().get(record.from_partition, 0) <= record.release_offset:
        sleep(POLL_SECONDS)
