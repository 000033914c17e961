"""From a batch to what is appended to the log, and to what is told of each item."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ingest.accepted import accepted
from ingest.updates import weight
from servioticy.domain.batches.items import Item, Unreadable
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import UNKNOWN_STREAM
from servioticy.domain.documents.updates import UpdateReader
from servioticy.domain.model import SensorUpdate, StreamRef
from servioticy.domain.records import UpdateRecord
from servioticy.ports.addresses import Address
from servioticy.refusals import STATUSES

ITEM_BYTES = 64
"""What an item counts beside its own bytes: each costs time, however short it is."""
MAX_REASON = 200
"""Characters of what is told of one item."""


@dataclass(slots=True)
class Target:
    """A stream that a batch is for: where its updates go, and how they are read."""

    address: Address
    reader: UpdateReader


class Accepted(NamedTuple):
    """An update that may come into the log."""

    place: int
    target: Target
    update: SensorUpdate

    @property
    def weight(self) -> int:
        """What it counts among what waits for the log."""
        return weight(1, len(self.update.document))

    def record(self, trace: str = "") -> tuple[Address, UpdateRecord]:
        """Return it as the log wants it, with where it was to go when that was asked."""
        update = self.update
        record = accepted(update.origin, update.timestamp, update.document, trace)
        return self.target.address, record


@dataclass(slots=True)
class Sorted:
    """What of a batch can be accepted, in order, and what is wrong with the rest."""

    accepted: list[Accepted] = field(default_factory=list)
    bytes: int = 0
    """of the documents"""
    refused: list[dict[str, Any]] = field(default_factory=list)
    hints: Sequence[str] = ()
    """what is odd about those that are accepted"""


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
        found.accepted.append(Accepted(item.place, target, update))
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
