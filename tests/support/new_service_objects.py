"""Service Objects as the API hands them to the store, from their documents."""

from __future__ import annotations

from typing import Any

import orjson

from sandbox import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.model import StreamRef
from servioticy.ports.change_store import NewServiceObject


def new_service_object(tenant: int, id_: str, document: dict[str, Any]) -> NewServiceObject:
    """One whose groups read streams that exist."""
    definition = parse_service_object(document, id_, argument_names)
    sources = tuple(
        (group.name, StreamRef(member, group.stream))
        for group in definition.groups
        for member in group.service_objects
    )
    streams = tuple(stream.ref.stream for stream in definition.streams)
    text = orjson.dumps(document)
    return NewServiceObject(id_, tenant, definition.public, text, streams, sources, 0)
