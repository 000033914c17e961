"""From a batch to what is appended to the log, and to what is answered for each item."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import msgspec

from api.http.content_types import sent
from api.http.errors import STATUSES
from api.services import Services
from servioticy.domain.batches import csv_rows, json_items, senml
from servioticy.domain.batches.items import Form, Item, Unreadable
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import UNKNOWN_STREAM
from servioticy.domain.documents.updates import UpdateReader
from servioticy.domain.model import SensorUpdate, StreamRef
from servioticy.domain.records import LogRecord, UpdateRecord
from servioticy.ports.addresses import Address

MAX_REASON = 200
"""Characters of what is told of one item."""


def form(services: Services, *, milliseconds: bool) -> Form:
    """Return the form of the present request's body, by its Content-Type."""
    pack: Form = partial(senml.pack, clock=services.clock, milliseconds=milliseconds)
    kinds: dict[str, Form] = {
        "application/json": json_items.array,
        "application/x-ndjson": json_items.lines,
        "application/ndjson": json_items.lines,
        "application/jsonl": json_items.lines,
        "application/senml+json": pack,
        "text/csv": csv_rows.rows,
    }
    return sent(kinds, "application/json")


@dataclass(slots=True)
class Target:
    """A stream that a batch is for: where its updates go, and how they are read."""

    address: Address
    reader: UpdateReader


class Taken(NamedTuple):
    """An update that may come into the log."""

    place: int
    target: Target
    update: SensorUpdate

    def record(self) -> tuple[int, LogRecord]:
        """Return it as the log wants it, with the partition."""
        update = self.update
        record = UpdateRecord(*update.origin, update.timestamp, msgspec.Raw(update.document))
        return self.target.address.partition, record


@dataclass(slots=True)
class Sorted:
    """What of a batch can be accepted, in order, and what is wrong with the rest."""

    taken: list[Taken] = field(default_factory=list)
    bytes: int = 0
    """of the documents"""
    refused: list[dict[str, Any]] = field(default_factory=list)


def sort(
    items: Iterable[Item | Unreadable],
    targets: Mapping[StreamRef, Target],
    fault: Callable[[SensorUpdate], BadDocument | None],
) -> Sorted:
    """Look at every item; `fault` tells why the log does not take an update."""
    found = Sorted()
    for item in items:
        try:
            if isinstance(item, Unreadable):
                raise item.error
            target = _target(item.origin, targets)
            update = item.read(target.reader)
            if (wrong := fault(update)) is not None:
                raise wrong
        except BadDocument as error:
            found.refused.append(_told(item.place, error))
            continue
        found.taken.append(Taken(item.place, target, update))
        found.bytes += len(update.document)
    return found


def _target(origin: StreamRef, targets: Mapping[StreamRef, Target]) -> Target:
    found = targets.get(origin)
    if found is None:
        # The same for what does not exist and for what is somebody else's.
        reason = "You have no Service Object with this stream."
        raise BadDocument(reason, "", UNKNOWN_STREAM)
    return found


def _told(index: int, error: BadDocument) -> dict[str, Any]:
    return {
        "index": index,
        "status": STATUSES.get(error.code, 400),
        "message": error.reason[:MAX_REASON],
        "pointer": error.pointer,
        "code": error.code,
    }
