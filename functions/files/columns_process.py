"""A process that reads Parquet: rows of a file that is there, as JSON.

Who made the file is not trusted: what reading it may take of memory and time is bounded, and where
it takes more this process ends, and no other.

Asked `{"file", "at", "most", "bytes", "longest"}` it answers with a line for each row, an empty
one where the row's has more bytes than the longest, and a line before them:
`{"next": row or null}`, or `{"bad": why}`.
"""

from __future__ import annotations

import base64
import resource
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import orjson
import pyarrow as pa
from pyarrow import parquet

from servioticy.apart.answering import serve

MAX_MEMORY = 2 * 1024 * 1024 * 1024
"""Of addresses; what loading takes is a third of it."""
MAX_GROUP_BYTES = 256 * 1024 * 1024
"""Of a row group, as it says of itself, without its compression."""
BATCH = 100


class _Bad(Exception):
    """The file cannot be read."""


FAULTS = (_Bad, pa.ArrowException, OSError, ValueError, TypeError, MemoryError)
"""Of a file, or of what reading it takes."""


class Reader:
    """Reads one file at a time, and goes on where it ended."""

    def __init__(self) -> None:
        self._file = ""
        self._at = 0
        self._rows: Iterator[dict[str, Any]] = iter(())
        self._count = 0

    def answer(self, request: bytes) -> bytes:
        """Return the next rows."""
        asked = orjson.loads(request)
        try:
            lines, next_ = self._read(
                asked["file"], asked["at"], asked["most"], asked["bytes"], asked["longest"]
            )
        except FAULTS as error:
            self._file = ""
            return orjson.dumps({"bad": f"it is no Parquet that can be read: {error}"[:300]})
        return b"\n".join([orjson.dumps({"next": next_}), *lines])

    def _read(
        self, file: str, at: int, most: int, size: int, longest: int
    ) -> tuple[list[bytes], int | None]:
        if (file, at) != (self._file, self._at):
            self._open(file, at)
        lines: list[bytes] = []
        while len(lines) < most and size > 0 and self._at < self._count:
            try:
                line = self._line()
            except FAULTS:
                if not lines:
                    raise
                self._file = ""
                break  # these rows come; the next portion begins with this one, and raises
            lines.append(line if len(line) <= longest else b"")
            size -= len(line)
            self._at += 1
        return lines, self._at if self._at < self._count else None

    def _line(self) -> bytes:
        row = next(self._rows, None)
        if row is None:
            raise _Bad("it has fewer rows than it says")
        return orjson.dumps(row, _json, orjson.OPT_NON_STR_KEYS)

    def _open(self, path: str, at: int) -> None:
        found = parquet.ParquetFile(path, memory_map=False, pre_buffer=False)
        about = found.metadata
        groups = [about.row_group(each) for each in range(about.num_row_groups)]
        if any(each.total_byte_size > MAX_GROUP_BYTES for each in groups):
            raise _Bad(f"a row group has more than {MAX_GROUP_BYTES} bytes")
        first = skipped = 0
        while first < len(groups) and skipped + groups[first].num_rows <= at:
            skipped += groups[first].num_rows
            first += 1
        self._rows = _rows(found, list(range(first, len(groups))), at - skipped)
        self._file, self._at, self._count = path, at, about.num_rows


def _rows(file: Any, groups: list[int], skip: int) -> Iterator[dict[str, Any]]:
    if not groups:
        return
    for batch in file.iter_batches(batch_size=BATCH, row_groups=groups, use_threads=False):
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        yield from batch.slice(skip).to_pylist()
        skip = 0


def _json(value: Any) -> Any:
    """Return what JSON has for a value that it has not."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def main() -> None:
    """Answer until nobody asks."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with suppress(ValueError, OSError):  # where less is allowed already
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    serve(Reader().answer)


if __name__ == "__main__":
    main()
