"""Files of updates, read a batch at a time: CSV as it is, Parquet made into the same.

Both have the column `lastUpdate` and one for each channel, as an export has them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from command import extras
from servioticy.client.batches import MAX_BYTES, MAX_ITEMS
from servioticy.errors import ServioticyError

PARQUET = (b"PAR1",)
ROWS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows as CSV with the line of names, how many, and how far into the file they reach."""

    content: bytes
    rows: int
    read: int


def batches(file: Path) -> Iterator[Batch]:
    """Yield a file's updates, as many at once as the API takes. Raises ServioticyError."""
    try:
        with file.open("rb") as opened:
            is_parquet = opened.read(4) in PARQUET
        yield from _cut(_parquet_rows(file) if is_parquet else _csv_rows(file))
    except (OSError, ValueError, csv.Error) as error:
        raise ServioticyError(f"{file} cannot be read: {error}") from error


def _cut(rows: Iterator[tuple[list[str], int]]) -> Iterator[Batch]:
    """Yield the rows in batches. The first row is the line of names."""
    names, read = next(rows, ([], 0))
    head = _line(names)
    batch, size = [head], len(head)
    for row, reached in rows:
        line = _line(row)
        if len(batch) > 1 and (len(batch) > MAX_ITEMS or size + len(line) > MAX_BYTES):
            yield Batch(b"".join(batch), len(batch) - 1, read)
            batch, size = [head], len(head)
        batch.append(line)
        size += len(line)
        read = reached
    if len(batch) > 1:
        yield Batch(b"".join(batch), len(batch) - 1, read)


def _csv_rows(file: Path) -> Iterator[tuple[list[str], int]]:
    """Yield the rows of a CSV file, and how many bytes of it are read by then."""
    with file.open("rb") as opened:
        lines = io.TextIOWrapper(opened, "utf-8-sig", newline="")
        for row in csv.reader(lines, strict=True):
            if row:
                yield row, opened.tell()


def _parquet_rows(file: Path) -> Iterator[tuple[list[str], int]]:
    """Yield the rows of a Parquet file as text, and how much of it is read by then."""
    extras.require("client")
    from pyarrow import ArrowException, parquet  # slow, and not needed for CSV

    try:
        with parquet.ParquetFile(file) as opened:
            total, done = max(1, opened.metadata.num_rows), 0
            yield list(opened.schema_arrow.names), 0
            for part in opened.iter_batches(ROWS_AT_ONCE):
                columns = [column.to_pylist() for column in part.columns]
                done += part.num_rows
                reached = file.stat().st_size * done // total
                for row in zip(*columns, strict=True):
                    yield [_text(each) for each in row], reached
    except ArrowException as error:
        raise ServioticyError(f"{file} cannot be read: {error}") from error


def _line(row: list[str]) -> bytes:
    written = io.StringIO(newline="")
    csv.writer(written).writerow(row)
    return written.getvalue().encode()


def _text(value: Any) -> str:
    """Return a value as a cell has it: text as it is, no value empty, all else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        at = value if value.tzinfo else value.replace(tzinfo=UTC)
        return str(round(at.timestamp() * 1000))
    try:
        return json.dumps(value)
    except TypeError as error:
        raise ValueError(f"a value is a {type(value).__name__}") from error
