"""Control records: what changes the meaning of the log, exactly at its place in it.

Each is a transaction of its own with the progress past it; doing one twice is harmless.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pipeline.partition import Partition
from servioticy.messaging.records import AcquireRecord, DefinitionRecord, ReleaseRecord
from servioticy.ports import Batch, Output

POLL_SECONDS = 0.005


def apply(
    record: DefinitionRecord | ReleaseRecord | AcquireRecord,
    offset: int,
    partition: Partition,
    output: Output,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Let the record take effect, and store that it has."""
    activate, release = None, None
    if isinstance(record, DefinitionRecord):
        activate = (record.service_object, record.version)
    elif isinstance(record, ReleaseRecord):
        release = (record.service_objects, record.to_partition)
    else:
        _wait_for_release(record, partition, sleep)
    partition.commit(
        lambda first_offset: Batch(
            partition.number,
            first_offset,
            offset + 1,
            output.acknowledged,
            forwarded=partition.taken,
            activate=activate,
            release=release,
        )
    )
    if isinstance(record, DefinitionRecord):
        _reload(record.service_object, partition)
    else:
        partition.forget(record.service_objects, lasts=True)


def _reload(service_object: str, partition: Partition) -> None:
    """Its component may have grown by it, so all who are known in it are loaded anew."""
    partition.forget(
        {each.id for each in partition.store.component(service_object)} | {service_object}
    )


def _wait_for_release(
    record: AcquireRecord, partition: Partition, sleep: Callable[[float], None]
) -> None:
    """Until the old partition has stored everything before its release record.

    Changes are made one at a time and each releases before it acquires, so of two
    partitions that wait for each other one waits for an earlier change: no deadlock.
    """
    while partition.store.all_progress().get(record.from_partition, 0) <= record.release_offset:
        sleep(POLL_SECONDS)
