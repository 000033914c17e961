"""The definitions in force, parsed once and kept while there is room."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

import orjson

from servioticy.documents import parse_service_object
from servioticy.documents.service_objects import ArgumentNames
from servioticy.model import Definition, Stream
from servioticy.ports import Catalog

ROOM = 32 * 1024 * 1024
"""How many bytes of documents are kept parsed; parsed they are several times as large."""


class Definitions:
    """Each version of a Service Object, understood; the least used are forgotten."""

    def __init__(self, catalog: Catalog, argument_names: ArgumentNames, room: int = ROOM) -> None:
        self._catalog = catalog
        self._argument_names = argument_names
        self._room = room
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int], _Kept] = OrderedDict()

    def stream(self, service_object: str, version: int, name: str) -> Stream | None:
        """The stream as that version declares it; a version never changes."""
        found = self._find((service_object, version))
        if found is None:
            document = self._catalog.document(service_object, version)
            if document is None:
                return None
            found = self._parse((service_object, version), document)
        return found.streams.get(name)

    def of(self, service_object: str, version: int, document: bytes) -> Definition:
        """That version of a Service Object, whose document is at hand."""
        key = (service_object, version)
        return (self._find(key) or self._parse(key, document)).definition

    def _find(self, key: tuple[str, int]) -> _Kept | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def _parse(self, key: tuple[str, int], document: bytes) -> _Kept:
        definition = parse_service_object(orjson.loads(document), key[0], self._argument_names)
        streams = {each.ref.stream: each for each in definition.streams}
        found = _Kept(len(document), definition, streams)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = found
                self._room -= found.size
            while self._room < 0:
                _key, least_used = self._kept.popitem(last=False)
                self._room += least_used.size
        return found


class _Kept(NamedTuple):
    size: int
    definition: Definition
    streams: dict[str, Stream]
