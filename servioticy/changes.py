"""Changing the stream graph: kept in the catalog, told to the log, then answered.

A program may die at any step. What is pending is finished by whoever changes next,
before anything else, and telling the log twice is harmless: the pipeline knows a change
it has made by its number.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from servioticy.domain.records import (
    AcquireRecord,
    DefinitionRecord,
    DeletionRecord,
    ErasureRecord,
    ReleaseRecord,
)
from servioticy.errors import ServioticyError
from servioticy.ports.catalog import Catalog, Change, NewServiceObject, Subscriber
from servioticy.ports.log import Log

MOST_MOVED = 10_000
"""Service Objects that one record names: half a megabyte of ids."""


class Changed(ServioticyError):
    """The Service Object has changed, or gone, since it was read."""


class StillSubscribed(ServioticyError):
    """Other Service Objects subscribe to streams that would go."""

    def __init__(self, subscribers: list[Subscriber]) -> None:
        super().__init__(f"{len(subscribers)} groups of others subscribe to it")
        self.subscribers = subscribers


def create(new: NewServiceObject, catalog: Catalog, log: Log) -> None:
    """Create a Service Object; when this returns it is in force for all later updates.

    Raises Unavailable where the log does not take it: then it may still come into
    force later.
    """
    with _changing(catalog, log):
        catalog.create(new, log.partitions())


def replace(
    new: NewServiceObject, revision: int, catalog: Catalog, log: Log, version: int | None = None
) -> int:
    """Put another document in force, at one place in the log; the number of its version.

    With a version it is that earlier one again. Raises Changed where the Service Object is
    not at that revision any more, StillSubscribed where others read a stream that it lacks.
    """
    with _changing(catalog, log):
        kept = catalog.current(new.id)
        if kept is None or kept.revision != revision:
            raise Changed
        sources = catalog.sources([new.id])
        gone = set(sources[new.id].streams) - set(new.streams) if sources else set()
        subscribers = catalog.subscribers(new.id, gone) if gone else []
        if subscribers:
            raise StillSubscribed(subscribers)
        change = catalog.replace(new, revision, version)
        if change is None:
            raise Changed
    return change.version


def delete(
    service_object: str, revision: int | None, now: int, catalog: Catalog, log: Log
) -> None:
    """Delete a Service Object, at one place in the log. Raises Changed as `replace` does."""
    with _changing(catalog, log):
        if catalog.delete(service_object, revision, now) is None:
            raise Changed


def erase(service_object: str, stream: str, catalog: Catalog, log: Log) -> None:
    """Forget the stored updates of a stream, at one place in the log. Raises Changed."""
    with _changing(catalog, log):
        if catalog.erase(service_object, stream) is None:
            raise Changed


def finish_pending(catalog: Catalog, log: Log) -> None:
    """Tell the log what it may not know yet. The caller holds `catalog.changing()`."""
    for number, change in catalog.pending():
        _append(number, change, log)
        catalog.finish(number, change)


@contextmanager
def _changing(catalog: Catalog, log: Log) -> Iterator[None]:
    """Hold the right to change; the log knows of all earlier changes, and then of this one.

    Earlier ones come first, because where a Service Object is routed changes when they are
    finished, and this change is made by it.
    """
    with catalog.changing():
        finish_pending(catalog, log)
        yield
        finish_pending(catalog, log)


def _append(number: int, change: Change, log: Log) -> None:
    """Each old partition releases before the new one acquires, and that before its use."""
    for old_partition, service_objects in change.moves:
        for first in range(0, len(service_objects), MOST_MOVED):
            some = service_objects[first : first + MOST_MOVED]
            offset = log.append(old_partition, ReleaseRecord(some, change.partition))
            log.append(change.partition, AcquireRecord(some, old_partition, offset))
    log.append(change.partition, _record(number, change))


def _record(number: int, change: Change) -> DefinitionRecord | DeletionRecord | ErasureRecord:
    if change.kind == "deletion":
        return DeletionRecord(change.service_object)
    if change.kind == "erasure":
        return ErasureRecord(change.service_object, change.stream, number)
    return DefinitionRecord(change.service_object, change.version, number)
