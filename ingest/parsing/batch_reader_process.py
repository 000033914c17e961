"""`python -m ingest.parsing.batch_reader_process FD`: reads batches for an API process."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence

from ingest.parsing.batch_reader import Asked, Found
from servioticy.apart.answering import serve
from servioticy.domain.batches.forms import FORMS
from servioticy.domain.batches.items import Item, Unreadable, bounded
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.updates import UpdateReader
from servioticy.domain.model import Stream, StreamRef


def answer(request: bytes) -> bytes:
    """Return the streams that a batch names, or what becomes of each of its items; or why not."""
    try:
        found: object = _answer(pickle.loads(request))  # noqa: S301  the API made it
    except BadDocument as error:
        found = error
    except Exception as error:  # noqa: BLE001  a fault of ours, told where the request is
        found = repr(error)
    return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)


def _answer(asked: Asked) -> object:
    items = bounded(FORMS[asked.form](asked.body, asked.origin, asked.way))
    if asked.declared is None:
        return list(dict.fromkeys(each.origin for each in items if isinstance(each, Item)))
    return list(_read(items, asked.declared))


def _read(
    items: Sequence[Item | Unreadable], declared: Mapping[StreamRef, Stream]
) -> Iterator[Found | Unreadable]:
    readers = {origin: UpdateReader(stream) for origin, stream in declared.items()}
    for item in items:
        if isinstance(item, Unreadable):
            yield item
            continue
        reader = readers.get(item.origin)
        yield Found(item.place, item.origin, None if reader is None else _one(item, reader))


def _one(item: Item, reader: UpdateReader) -> tuple[int, bytes] | BadDocument:
    try:
        update = item.read(reader)
    except BadDocument as error:
        return error
    return update.timestamp, update.document


if __name__ == "__main__":
    serve(answer)
