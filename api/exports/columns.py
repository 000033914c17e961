"""Exports as Arrow streams and Parquet files; the only importer of pyarrow in the API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pyarrow as pa
from pyarrow import parquet

from api.exports.writer import TIMESTAMP, columns, document, values
from servioticy.domain.batches import remainders
from servioticy.domain.batches.csv_rows import is_given_back
from servioticy.domain.model import Channel
from servioticy.ports.history import VersionedUpdate

GROUP_BYTES = 2_097_152
GROUP_ROWS = 25_000
"""A row group of a Parquet file ends with the page that reaches one of them."""


class _Sink:
    """Where pyarrow writes to, and what was written is taken from."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def flush(self) -> None:
        """There is nothing behind it."""

    def taken(self) -> bytes:
        """Return what was written since."""
        found = b"".join(self._parts)
        self._parts.clear()
        return found


class ArrowStream:
    """A record batch for each page."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        """Have a column for each channel."""
        self._table = _Table(channels)
        self._sink = _Sink()
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._sink, mode="w"), self._table.schema)

    def page(self, updates: Sequence[VersionedUpdate]) -> bytes:
        """Return the record batch of these updates."""
        self._writer.write_batch(self._table.batch(updates))
        return self._sink.taken()

    def end(self) -> bytes:
        """Return the mark of the end."""
        self._writer.close()
        return self._sink.taken()


class ParquetFile:
    """A row group for several pages: smaller ones would make the file large, and slow to read."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        """Have a column for each channel."""
        self._table = _Table(channels)
        self._sink = _Sink()
        out = pa.PythonFile(self._sink, mode="w")
        self._writer = parquet.ParquetWriter(out, self._table.schema, compression="zstd")
        self._batches: list[Any] = []
        self._rows = self._bytes = 0

    def page(self, updates: Sequence[VersionedUpdate]) -> bytes:
        """Return a row group where these updates make it full."""
        self._batches.append(self._table.batch(updates))
        self._rows += len(updates)
        self._bytes += sum(len(each.document) for each in updates)
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._write_group()
        return self._sink.taken()

    def end(self) -> bytes:
        """Return the last row group and the footer."""
        self._write_group()
        self._writer.close()
        return self._sink.taken()

    def _write_group(self) -> None:
        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches))
        self._batches = []
        self._rows = self._bytes = 0


class _Table:
    """The columns of a stream: what they are called, of which type, and what goes into them."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        self._channels = channels = columns(channels)
        self._types = {each.name: each.type for each in channels}
        self._kinds = [_kind(each.type) for each in channels]
        fields = [pa.field(TIMESTAMP, pa.int64(), nullable=False)]
        fields += [pa.field(c.name, t) for c, (t, _) in zip(channels, self._kinds, strict=True)]
        self.schema = pa.schema([*fields, pa.field(remainders.COLUMN, pa.string())])

    def batch(self, updates: Sequence[VersionedUpdate]) -> Any:
        """Return these updates as a record batch."""
        found = [document(each) for each in updates]
        rows = [values(each, self._channels) for each in found]
        arrays = [pa.array([each.timestamp for each in updates], pa.int64())]
        for number, (type_, cell) in enumerate(self._kinds):
            arrays.append(pa.array([cell(row[number]) for row in rows], type_))
        rest = [remainders.remainder(each, self._gives_back) for each in found]
        arrays.append(pa.array(rest, pa.string()))
        return pa.record_batch(arrays, schema=self.schema)

    def _gives_back(self, channel: str, value: Any) -> bool:
        type_name = self._types.get(channel)
        if type_name == "number":
            number = _number(value)
            return number is not None and number == value
        return type_name is not None and is_given_back(value, type_name)


def _kind(type_name: str) -> tuple[Any, Callable[[Any], Any]]:
    """Return the type of a channel's column, and what makes a cell of a value."""
    if type_name == "number":
        return pa.float64(), _number
    if type_name == "boolean":
        return pa.bool_(), lambda value: value if isinstance(value, bool) else None
    return pa.string(), _text


def _number(value: Any) -> float | None:
    """Return a number; a value of an earlier version that is none is left out."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def _text(value: Any) -> str | None:
    """Return text as it is, and everything else, such as an array, as JSON."""
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()
