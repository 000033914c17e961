"""What every format of an export is made by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import orjson

from servioticy.domain.model import Channel
from servioticy.ports.history import VersionedUpdate

TIMESTAMP = "lastUpdate"


class Writer(Protocol):
    """Makes one file, from pages of updates, oldest first."""

    def page(self, updates: Sequence[VersionedUpdate]) -> bytes:
        """Return what there is of the file so far and has not been returned; perhaps nothing."""

    def end(self) -> bytes:
        """Return the rest of the file."""


class Lines:
    """Each update as it is stored, on a line of its own (NDJSON)."""

    def __init__(self, _channels: Sequence[Channel]) -> None:
        """Write what updates say, whatever the channels are."""

    def page(self, updates: Sequence[VersionedUpdate]) -> bytes:
        """Return the lines of these updates."""
        return b"".join(b"%b\n" % each.document for each in updates)

    def end(self) -> bytes:
        """Return nothing more."""
        return b""


def columns(channels: Iterable[Channel]) -> list[Channel]:
    """Return the channels that have a column; one called as the time is told beside them."""
    return [each for each in channels if each.name != TIMESTAMP]


def document(update: VersionedUpdate) -> dict[str, Any]:
    """Return an update as it was sent."""
    found: dict[str, Any] = orjson.loads(update.document)
    return found


def values(document: dict[str, Any], channels: Iterable[Channel]) -> list[Any]:
    """Return the value of each channel, None where the update has none."""
    found = document.get("channels", {})
    return [_value(found.get(each.name)) for each in channels]


def _value(content: Any) -> Any:
    return content.get("current-value") if isinstance(content, dict) else None
