"""What every form of a batch comes to: items, each of which can be read by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import TOO_MUCH
from servioticy.domain.documents.updates import UpdateReader
from servioticy.domain.model import SensorUpdate, StreamRef

MAX_ITEMS = 10_000
"""Items of one batch."""
MAX_STREAMS = 1_000
"""Streams that one batch names."""


class Item(msgspec.Struct, frozen=True):
    """One update of a batch, not looked at yet."""

    place: int
    """Its place in what was sent, from 0; of several records that make it, the first one's."""
    origin: StreamRef
    """Which stream it is for."""
    read: Callable[[UpdateReader], SensorUpdate]
    """Reads it as an update of its stream. Raises BadDocument."""


class Unreadable(msgspec.Struct, frozen=True):
    """A part of a batch that is no update, whatever its stream."""

    place: int
    error: BadDocument


Items = Iterator[Item | Unreadable]
Form = Callable[[bytes, StreamRef | None], Items]
"""Takes a body apart: into items of the one stream named, or of those that they name.

Raises BadDocument where the body as a whole cannot be read, before or between items.
"""


def bounded(items: Items) -> list[Item | Unreadable]:
    """Return all items. Raises BadDocument where there are too many of them, or of streams."""
    found: list[Item | Unreadable] = []
    streams: set[StreamRef] = set()
    for each in items:
        if len(found) == MAX_ITEMS:
            reason = f"There are more than {MAX_ITEMS} updates in one batch"
            raise BadDocument(reason, "", TOO_MUCH)
        found.append(each)
        if isinstance(each, Item):
            streams.add(each.origin)
        if len(streams) > MAX_STREAMS:
            reason = f"One batch names more than {MAX_STREAMS} streams"
            raise BadDocument(reason, "", TOO_MUCH)
    return found
