"""Batches as CSV: a line of names, then an update a line."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from servioticy.domain.batches import remainders
from servioticy.domain.batches.items import Item, Items, Unreadable
from servioticy.domain.documents import BadDocument, json_texts
from servioticy.domain.documents.codes import (
    DUPLICATE,
    NOT_CSV,
    REQUIRED,
    TOO_MUCH,
    WRONG_TYPE,
)
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.documents.updates import UpdateReader
from servioticy.domain.model import SensorUpdate, StreamRef

TIMESTAMP = "lastUpdate"
SERVICE_OBJECT = "serviceObject"
STREAM = "stream"
MAX_COLUMNS = 1_004
"""As many channels as a stream may have, the three names above, and what is beside them."""


def rows(body: bytes, stream: StreamRef | None) -> Items:
    """Take apart CSV (RFC 4180) in UTF-8. Raises BadDocument where it is none.

    The names are `lastUpdate` and those of channels; where no stream is given, `serviceObject`
    and `stream` too. An empty cell is a channel that the update does not have.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadDocument(f"The CSV is not in UTF-8: {error}", "", NOT_CSV) from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    names = next(_lines(reader), [])
    _check(names, stream)
    return (_row(index, names, cells, stream) for index, cells in enumerate(_lines(reader)))


def _lines(reader: Any) -> Iterator[list[str]]:
    """Yield what has any cell. Raises BadDocument where quotes do not match, for one."""
    try:
        for cells in reader:
            if cells:
                yield cells
    except csv.Error as error:
        reason = f"Line {reader.line_num} is not CSV: {error}"
        raise BadDocument(reason, "", NOT_CSV) from error


def _check(names: Sequence[str], stream: StreamRef | None) -> None:
    if len(names) > MAX_COLUMNS:
        reason = f"The first line of the CSV names more than {MAX_COLUMNS} columns"
        raise BadDocument(reason, "", TOO_MUCH)
    needed = [TIMESTAMP] if stream is not None else [TIMESTAMP, SERVICE_OBJECT, STREAM]
    for name in needed:
        if name not in names:
            raise BadDocument(f"The first line of the CSV does not name {name}", "", REQUIRED)
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        reason = f"The first line of the CSV names {twice:.100} twice"
        raise BadDocument(reason, "", DUPLICATE)


def _row(
    index: int, names: Sequence[str], cells: list[str], stream: StreamRef | None
) -> Item | Unreadable:
    if len(cells) != len(names):
        reason = f"There are {len(names)} names in the first line, and {len(cells)} cells here"
        return Unreadable(index, BadDocument(reason, "", NOT_CSV))
    values = dict(zip(names, cells, strict=True))
    origin = stream or StreamRef(values.pop(SERVICE_OBJECT), values.pop(STREAM))

    def read(reader: UpdateReader) -> SensorUpdate:
        return reader.take(_update(values, reader.types))

    return Item(index, origin, read)


def _update(values: Mapping[str, str], types: Mapping[str, str]) -> Any:
    """Return the update that the cells of a row make: each as its channel's type wants it."""
    channels = {
        name: _value(name, cell, types.get(name, ""))
        for name, cell in values.items()
        if cell and name not in (TIMESTAMP, remainders.COLUMN)
    }
    rest = values.get(remainders.COLUMN)
    document = remainders.merged(channels, _loaded(rest, "") if rest else {})
    if isinstance(document, dict):
        document[TIMESTAMP] = _timestamp(values[TIMESTAMP])
    return document


def _timestamp(cell: str) -> Any:
    """A date is text, here as in JSON."""
    try:
        return _loaded(cell, "/lastUpdate")
    except BadDocument:
        if not cell or cell.lstrip("-").isdecimal():
            raise
        return cell


def is_given_back(value: Any, type_name: str) -> bool:
    """Return whether the cell that a value of a channel is written as is read as that value."""
    if isinstance(value, str) and type_name == "string":
        return value != ""
    if value is None or value == "":
        return False
    if type_name == "number" and isinstance(value, int | float):
        return not isinstance(value, bool)
    try:
        found = _value("", written(value), type_name)
        return orjson.dumps(found) == orjson.dumps(value)
    except BadDocument:
        return False


def written(value: Any) -> str:
    """Return the cell of a value: text is itself, another as JSON writes it, none is empty."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _value(name: str, cell: str, type_name: str) -> Any:
    """Return the value of a cell: text is itself, everything else is written as in JSON.

    A place may be either; a name that is no channel is found out later.
    """
    if type_name in ("string", "") or (type_name == "geo_point" and not cell.startswith("[")):
        return cell
    return _loaded(cell, WHOLE.at("channels", name, "current-value").pointer)


def _loaded(cell: str, pointer: str) -> Any:
    try:
        return json_texts.read(cell.encode())
    except BadDocument as error:
        if error.code == TOO_MUCH:
            raise BadDocument(error.reason, pointer, TOO_MUCH) from error
        reason = f"{cell[:40]!r} is neither a number nor another value as JSON writes it"
        raise BadDocument(reason, pointer, WRONG_TYPE) from error
