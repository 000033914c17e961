"""Batches as a JSON array, or with a JSON object on each line (NDJSON)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from servioticy.domain.batches.items import Item, Items, Unreadable
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import NOT_JSON, REQUIRED, TOO_NESTED, WRONG_TYPE
from servioticy.domain.documents.updates import UpdateReader
from servioticy.domain.model import SensorUpdate, StreamRef


class _Named(msgspec.Struct, rename="camel"):
    """An update that says which stream it is for."""

    service_object: str
    stream: str
    update: msgspec.Raw


_array = msgspec.json.Decoder(list[msgspec.Raw])
_named = msgspec.json.Decoder(_Named)


def array(body: bytes, stream: StreamRef | None) -> Items:
    """Take apart a JSON array of updates. Raises BadDocument where it is none."""
    try:
        parts = _array.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        code = WRONG_TYPE if isinstance(error, msgspec.ValidationError) else NOT_JSON
        raise BadDocument(f"The request is not a JSON array: {error}", "", code) from error
    except RecursionError as error:
        raise BadDocument("The request is nested too deeply", "", TOO_NESTED) from error
    return _items(enumerate(parts), stream)


def lines(body: bytes, stream: StreamRef | None) -> Items:
    """Take apart lines with an update each; empty lines are passed over, and counted."""
    numbered = ((n, each) for n, each in enumerate(body.split(b"\n")) if each.strip())
    return _items(numbered, stream)


def _items(parts: Iterable[tuple[int, bytes | msgspec.Raw]], stream: StreamRef | None) -> Items:
    for index, part in parts:
        yield _named_item(index, part) if stream is None else _item(index, stream, part)


def _item(index: int, stream: StreamRef, update: bytes | msgspec.Raw) -> Item:
    def read(reader: UpdateReader) -> SensorUpdate:
        return reader.parse(update)

    return Item(index, stream, read)


def _named_item(index: int, part: bytes | msgspec.Raw) -> Item | Unreadable:
    try:
        found = _named.decode(part)
    except msgspec.ValidationError as error:
        code = REQUIRED if "missing required" in str(error) else WRONG_TYPE
        return Unreadable(index, BadDocument(_told(error), "", code))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Unreadable(index, BadDocument(_told(error), "", NOT_JSON))
    except RecursionError:
        return Unreadable(index, BadDocument("The update is nested too deeply", "", TOO_NESTED))
    return _item(index, StreamRef(found.service_object, found.stream), found.update)


def _told(error: Exception) -> str:
    return f"An update of a batch is an object of serviceObject, stream and update: {error}"
