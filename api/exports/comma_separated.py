"""Exports as CSV (RFC 4180): a line of names, then an update a line.

What is written here a batch takes back (`servioticy/domain/batches/csv_rows.py`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from api.exports.writer import TIMESTAMP, columns, document, values
from servioticy.domain.batches import remainders
from servioticy.domain.batches.csv_rows import is_given_back, written
from servioticy.domain.model import Channel
from servioticy.ports.history import VersionedUpdate


class CommaSeparated:
    """Text is itself, another value as JSON writes it; no value is an empty cell."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        """Have a column for each channel."""
        self._channels = columns(channels)
        self._types = {each.name: each.type for each in self._channels}
        self._text = io.StringIO()
        self._rows = csv.writer(self._text)
        self._rows.writerow([TIMESTAMP, *self._types, remainders.COLUMN])

    def page(self, updates: Sequence[VersionedUpdate]) -> bytes:
        """Return the lines of these updates, after that of the names if they are the first."""
        self._rows.writerows(map(self._row, updates))
        return self._taken()

    def end(self) -> bytes:
        """Return the names where there was no update."""
        return self._taken()

    def _row(self, update: VersionedUpdate) -> list[Any]:
        found = document(update)
        rest = remainders.remainder(found, self._gives_back)
        return [update.timestamp, *map(written, values(found, self._channels)), rest or ""]

    def _gives_back(self, channel: str, value: Any) -> bool:
        return channel in self._types and is_given_back(value, self._types[channel])

    def _taken(self) -> bytes:
        found = self._text.getvalue().encode()
        self._text.seek(0)
        self._text.truncate()
        return found
