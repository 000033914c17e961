"""A process that reads Parquet: rows of a file that is there, as JSON.

Who made the file is not trusted: what reading it may take of memory and time is bounded, and where
it takes more this process ends, and no other.

Asked `{"file", "at", "most", "bytes", "longest"}` it answers with a line for each row, an empty
one where the row's has more bytes than the longest, and a line before them:
`{"next": row or null, "us": n}`, or `{"bad": why, "us": n}`: so many microseconds of the
processor it has used for that.
"""

from __future__ import annotations

import base64
import resource
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
from pyarrow import parquet

from servioticy.apart.answering import serve

MAX_MEMORY = 2 * 1024 * 1024 * 1024
"""Of addresses; what loading takes is a third of it."""
MAX_GROUP_BYTES = 256 * 1024 * 1024
"""Of a row group, as it says of itself, without its compression."""
MAX_GROUP_ROWS = 2_000_000
"""Those before a place in it are read again where nobody goes on from it."""
BATCH = 100
MOST_OPEN = 8
"""Places in files at which is gone on, those that were read last: more than files are begun at a
time by those who cut them."""
BUFFER_BYTES = 65_536
"""Of a column that is read of a file: else it would be all that a row group has of it."""


class _Bad(Exception):
    """The file cannot be read."""


FAULTS = (_Bad, pa.ArrowException, OSError, ValueError, TypeError, MemoryError)
"""Of a file, or of what reading it takes."""


class Reader:
    """Reads some files, and goes on in each where it ended."""

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[str, int], _Rows] = OrderedDict()

    def answer(self, request: bytes) -> bytes:
        """Return the next rows."""
        before = time.process_time_ns()
        about, lines = self._answered(request)
        about["us"] = (time.process_time_ns() - before) // 1_000
        return b"\n".join([orjson.dumps(about), *lines])

    def _answered(self, request: bytes) -> tuple[dict[str, Any], list[bytes]]:
        asked = orjson.loads(request)
        for key in [each for each in self._open if not Path(each[0]).exists()]:
            del self._open[key]  # else its copy would take room on the disk
        try:
            return self._answer(asked)
        except FAULTS as error:
            if not self._open:
                return _bad(error)
            self._open.clear()  # perhaps others' files had the memory
        try:
            return self._answer(asked)
        except FAULTS as error:
            return _bad(error)

    def _answer(self, asked: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        file, at, most, size = asked["file"], asked["at"], asked["most"], asked["bytes"]
        rows = self._open.pop((file, at), None) or _Rows(file, at)
        lines: list[bytes] = []
        while len(lines) < most and size > 0 and rows.at < rows.count:
            try:
                line = rows.line()
            except FAULTS:
                if not lines:
                    raise
                break  # these rows come; the next portion begins with this one, and raises
            lines.append(line if len(line) <= asked["longest"] else b"")
            size -= len(line)
        else:
            if most > 1:  # a single row is not gone on from
                self._keep(file, rows)
        next_ = rows.at if rows.at < rows.count else None
        return {"next": next_}, lines

    def _keep(self, file: str, rows: _Rows) -> None:
        if rows.at < rows.count:
            self._open[file, rows.at] = rows
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)


class _Rows:
    """A file from one row on."""

    def __init__(self, path: str, at: int) -> None:
        found = parquet.ParquetFile(
            path, memory_map=False, pre_buffer=False, buffer_size=BUFFER_BYTES
        )
        about = found.metadata
        groups = [about.row_group(each) for each in range(about.num_row_groups)]
        if any(each.total_byte_size > MAX_GROUP_BYTES for each in groups):
            raise _Bad(f"a row group has more than {MAX_GROUP_BYTES} bytes")
        if any(each.num_rows > MAX_GROUP_ROWS for each in groups):
            raise _Bad(f"a row group has more than {MAX_GROUP_ROWS} rows")
        first = skipped = 0
        while first < len(groups) and skipped + groups[first].num_rows <= at:
            skipped += groups[first].num_rows
            first += 1
        self.at = at
        self.count: int = about.num_rows
        self._rows = _rows(found, list(range(first, len(groups))), at - skipped)

    def line(self) -> bytes:
        """Return the next row."""
        row = next(self._rows, None)
        if row is None:
            raise _Bad("it has fewer rows than it says")
        line = orjson.dumps(row, _json, orjson.OPT_NON_STR_KEYS)
        self.at += 1
        return line


def _rows(file: Any, groups: list[int], skip: int) -> Iterator[dict[str, Any]]:
    if not groups:
        return
    for batch in file.iter_batches(batch_size=BATCH, row_groups=groups, use_threads=False):
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        yield from batch.slice(skip).to_pylist()
        skip = 0


def _bad(error: BaseException) -> tuple[dict[str, Any], list[bytes]]:
    return {"bad": f"it is no Parquet that can be read: {error}"[:300]}, []


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
