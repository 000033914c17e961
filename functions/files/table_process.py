"""A process that makes Parquet of atoms: asked rows of JSON, a line each, it answers with a file.

Before the file is a line: so many microseconds of the processor it has used for that.

What atoms have is not ours: columns are what the rows have, and what does not go together in one
is text. The same rows make the same file.
"""

from __future__ import annotations

import io
import resource
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import orjson
import pyarrow as pa
from pyarrow import parquet

from servioticy.apart.answering import serve

MAX_MEMORY = 3 * 1024 * 1024 * 1024
"""Of addresses."""
MAX_COLUMNS = 1_000
WHOLE = "atom"
"""The only column where there would be more: the atom as JSON."""
MAX_CELLS = 20_000_000
"""Rows times columns; with more it is that column alone, too: each takes memory, empty or not."""
GROUP_ROWS = 100_000
FAULTS = (pa.ArrowException, ValueError, TypeError, OverflowError)


def answer(lines: bytes) -> bytes:
    """Return a file, behind what it took."""
    before = time.process_time_ns()
    file = file_of(lines)
    return b"%d\n%b" % ((time.process_time_ns() - before) // 1_000, file)


def file_of(lines: bytes) -> bytes:
    """Return rows as Parquet."""
    rows = lines.split(b"\n")
    try:
        return _written(table_of(rows))
    except FAULTS:  # whatever it is that does not go into columns
        return _written(_whole(rows))


def _written(table: Any) -> bytes:
    found = io.BytesIO()
    parquet.write_table(table, found, row_group_size=GROUP_ROWS, compression="snappy")
    return found.getvalue()


def _whole(lines: Sequence[bytes]) -> Any:
    return pa.table({WHOLE: pa.array([each.decode() for each in lines], pa.string())})


def table_of(lines: Sequence[bytes]) -> Any:
    """Return rows as a table, whose columns are in the order in which they come first."""
    rows = [orjson.loads(each) for each in lines]
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names or len(names) > MAX_COLUMNS or len(names) * len(rows) > MAX_CELLS:
        return _whole(lines)
    return pa.table({name: _column([row.get(name) for row in rows]) for name in names})


def _column(values: Sequence[Any]) -> Any:
    try:
        found = pa.array(values)
    except FAULTS:
        return _text(values)
    return found if _is_readable(found.type) else _text(values)


def _text(values: Sequence[Any]) -> Any:
    """Return a column of texts, which have as JSON what is none."""
    texts = [
        each if each is None or isinstance(each, str) else orjson.dumps(each).decode()
        for each in values
    ]
    return pa.array(texts, pa.string())


def _is_readable(kind: Any) -> bool:
    """Whether everybody has something for it: not for what is always null, or has no members."""
    if pa.types.is_null(kind):
        return False
    if pa.types.is_list(kind):
        return _is_readable(kind.value_type)
    if pa.types.is_struct(kind):
        own = [kind.field(each).type for each in range(kind.num_fields)]
        return bool(own) and all(map(_is_readable, own))
    return True


def main() -> None:
    """Answer until nobody asks."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with suppress(ValueError, OSError):  # where less is allowed already
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    serve(answer)


if __name__ == "__main__":
    main()
