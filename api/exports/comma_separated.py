"""Exports as CSV (RFC 4180): a line of names, then an update a line.

What is written here a batch takes back (`servioticy/domain/batches/csv_rows.py`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import orjson

from api.exports.writer import TIMESTAMP, values
from servioticy.domain.model import Channel
from servioticy.ports.history import VersionedUpdate


class CommaSeparated:
    """Text is itself, another value as JSON writes it; no value is an empty cell."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        """Have a column for each channel."""
        self._channels = channels
        self._text = io.StringIO()
        self._rows = csv.writer(self._text)
        self._rows.writerow([TIMESTAMP, *(each.name for each in channels)])

    def page(self, updates: Sequence[VersionedUpdate]) -> bytes:
        """Return the lines of these updates, after that of the names if they are the first."""
        self._rows.writerows(
            [each.timestamp, *map(_cell, values(each, self._channels))] for each in updates
        )
        return self._taken()

    def end(self) -> bytes:
        """Return the names where there was no update."""
        return self._taken()

    def _taken(self) -> bytes:
        found = self._text.getvalue().encode()
        self._text.seek(0)
        self._text.truncate()
        return found


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
