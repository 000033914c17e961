"""Changing the stream graph: kept in the catalog, told to the log, then answered.

A program may die at any step. What is pending is finished by whoever changes next, and
telling the log twice is harmless: a version already in force, a Service Object already
released.
"""

from __future__ import annotations

from servioticy.messaging.records import AcquireRecord, DefinitionRecord, ReleaseRecord
from servioticy.ports import Catalog, Change, Log, NewServiceObject


def create(new: NewServiceObject, catalog: Catalog, log: Log) -> None:
    """Create a Service Object; when this returns it is in force for all later updates.

    Raises Unavailable where the log does not take it: then it may still come into
    force later.
    """
    with catalog.changing():
        catalog.create(new, log.partitions())
        finish_pending(catalog, log)


def finish_pending(catalog: Catalog, log: Log) -> None:
    """Tell the log what it may not know yet. The caller holds `catalog.changing()`."""
    for number, change in catalog.pending():
        _append(change, log)
        catalog.finish(number, change)


def _append(change: Change, log: Log) -> None:
    """Each old partition releases before the new one acquires, and that before its use."""
    for old_partition, service_objects in change.moves:
        offset = log.append(old_partition, ReleaseRecord(service_objects, change.partition))
        log.append(change.partition, AcquireRecord(service_objects, old_partition, offset))
    log.append(change.partition, DefinitionRecord(change.service_object, change.version))
