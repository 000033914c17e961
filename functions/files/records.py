"""Lines of text as atoms: NDJSON, and CSV (RFC 4180), a portion of a file at a time."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

from servioticy.domain.workflows.programs import fault_of

MAX_RECORD = 65_536
"""Bytes of a record as it is written: a line, or with quotes several."""
MAX_COLUMNS = 500
MAX_HEADER = 16_384
"""Bytes."""
MOST = 1_000
"""Atoms of a portion."""
MOST_BYTES = 1_048_576
"""Of its atoms, and one more."""
_BOM = b"\xef\xbb\xbf"


class BadFile(Exception):
    """The rest of the file cannot be cut; the message says why."""


class Bad(NamedTuple):
    """A record that is no atom."""

    at: int
    """Where it begins: a byte of the file, or a row."""
    reason: str


class Portion(NamedTuple):
    """What was cut."""

    atoms: Sequence[bytes]
    bad: Sequence[Bad]
    at: int | None
    """Where the next portion begins; None: this was the last one."""
    header: Sequence[str] | None = None
    """The names of the columns, where the file begins with them."""
    processor_us: int = 0
    """That others than who asked have used."""


def json_lines(chunk: bytes, at: int, is_end: bool, most: int = MOST) -> Portion:
    """Cut a part of a file that begins with a record. Raises BadFile."""
    found = _Found(most)
    for start, end, line in _lines(chunk, is_end):
        if end - start > MAX_RECORD:
            if found.end:
                break  # what was cut comes; the next portion begins with this one, and raises
            raise BadFile(f"the line at byte {at + start} has more than {MAX_RECORD} bytes")
        text = line.removeprefix(_BOM).strip() if at + start == 0 else line.strip()
        if text:
            found.add(at + start, *_object(text))
        found.end = end
        if found.is_full:
            break
    return found.portion(chunk, at, is_end)


def csv_rows(
    chunk: bytes,
    at: int,
    is_end: bool,
    separator: str,
    header: Sequence[str] | None,
    most: int = MOST,
) -> Portion:
    """Cut a part of a file that begins with a record, the first with the names of its columns.

    Cells are texts. Raises BadFile.
    """
    found = _Found(most)
    for start, end, cells in _rows(chunk, is_end, separator):
        if end - start > MAX_RECORD:
            if found.end:
                break  # as above
            raise BadFile(f"the record at byte {at + start} has more than {MAX_RECORD} bytes")
        found.end = end
        if isinstance(cells, str):
            if header is None:
                raise BadFile(f"the first line does not name the columns: {cells}")
            found.add(at + start, None, cells)
        elif header is None:
            header = _header(cells, end, at)
        elif len(cells) == len(header):
            atom = orjson.dumps(dict(zip(header, cells, strict=True)))
            found.add(at + start, atom, fault_of(atom))
        elif cells:
            reason = (
                f"there are {len(header)} names in the first line, and {len(cells)} cells here"
            )
            found.add(at + start, None, reason)
        if found.is_full:
            break
    return found.portion(chunk, at, is_end)._replace(header=header)


class _Found:
    """What is cut so far."""

    def __init__(self, most: int) -> None:
        self.end = 0
        """How far, in the chunk."""
        self._most = most
        self._atoms: list[bytes] = []
        self._bad: list[Bad] = []
        self._bytes = 0

    def add(self, at: int, atom: bytes | None, fault: str) -> None:
        if fault or atom is None:
            self._bad.append(Bad(at, fault))
        else:
            self._atoms.append(atom)
            self._bytes += len(atom)

    @property
    def is_full(self) -> bool:
        return len(self._atoms) + len(self._bad) >= self._most or self._bytes >= MOST_BYTES

    def portion(self, chunk: bytes, at: int, is_end: bool) -> Portion:
        ended = is_end and self.end == len(chunk)
        if not ended and self.end == 0:
            raise BadFile(f"the record at byte {at} has more than {MAX_RECORD} bytes")
        return Portion(self._atoms, self._bad, None if ended else at + self.end)


def _lines(chunk: bytes, is_end: bool, start: int = 0) -> Iterator[tuple[int, int, bytes]]:
    """Yield whole lines: where each begins and ends, and the line."""
    while start < len(chunk):
        end = chunk.find(b"\n", start) + 1
        if end == 0:
            if not is_end:
                return
            end = len(chunk)
        yield start, end, chunk[start:end]
        start = end


def _object(text: bytes) -> tuple[bytes | None, str]:
    """Return a line as an atom, and what is wrong with it."""
    try:
        value = orjson.loads(text)
        atom = orjson.dumps(value)
    except (ValueError, TypeError) as error:  # what is read is nested deeper than what is written
        return None, f"the line is not JSON: {error}"[:200]
    if not isinstance(value, dict):
        return None, "an atom is a JSON object"
    return atom, fault_of(atom)


class _Unfinished(Exception):
    """The chunk ends within a record."""


class _Text:
    """Lines for a reader of CSV, and how far they go; it asks for one more within a record."""

    def __init__(self, chunk: bytes, start: int, is_end: bool) -> None:
        self.end = start
        self._chunk = chunk
        self._is_end = is_end

    def __iter__(self) -> Iterator[str]:
        for _, end, line in _lines(self._chunk, self._is_end, self.end):
            self.end = end
            yield line.decode()
        if not self._is_end:
            raise _Unfinished


def _rows(
    chunk: bytes, is_end: bool, separator: str
) -> Iterator[tuple[int, int, list[str] | str]]:
    """Yield records: where each begins and ends, and its cells, or why it has none."""
    start = 0
    while start < len(chunk):
        text = _Text(chunk, start, is_end)
        try:
            for cells in csv.reader(text, strict=True, delimiter=separator):
                yield start, text.end, cells
                start = text.end
            return
        except _Unfinished:
            return
        except UnicodeDecodeError:
            yield start, text.end, "it is not in UTF-8"
        except csv.Error as error:
            yield start, text.end, f"it is not CSV: {error}"
        start = text.end


def _header(cells: Sequence[str], end: int, at: int) -> Sequence[str]:
    if end > MAX_HEADER or len(cells) > MAX_COLUMNS:
        raise BadFile(f"the first line names {MAX_COLUMNS} columns in {MAX_HEADER} bytes at most")
    if not cells:
        raise BadFile("the first line names no columns")
    name, count = Counter(cells).most_common(1)[0]
    if count > 1:
        raise BadFile(f"the first line names {name[:100]!r} twice")
    return [cells[0].removeprefix("\ufeff") if at == 0 else cells[0], *cells[1:]]
