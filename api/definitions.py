"""The definitions in force, parsed once and kept while there is room."""

from __future__ import annotations

import threading
from collections import OrderedDict

import orjson

from servioticy.documents import parse_service_object
from servioticy.documents.service_objects import ArgumentNames
from servioticy.model import Stream
from servioticy.ports import Catalog

ROOM = 32 * 1024 * 1024
"""How many bytes of documents are kept parsed; parsed they are several times as large."""


class Definitions:
    """Streams by name of each version of a Service Object; the least used are forgotten."""

    def __init__(self, catalog: Catalog, argument_names: ArgumentNames, room: int = ROOM) -> None:
        self._catalog = catalog
        self._argument_names = argument_names
        self._room = room
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int], tuple[int, dict[str, Stream]]] = OrderedDict()

    def stream(self, service_object: str, version: int, name: str) -> Stream | None:
        """The stream as that version declares it; a version never changes."""
        key = (service_object, version)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if found is None:
            found = self._read(key)
            self._keep(key, found)
        return found[1].get(name)

    def _read(self, key: tuple[str, int]) -> tuple[int, dict[str, Stream]]:
        document = self._catalog.document(*key)
        if document is None:
            return 0, {}
        definition = parse_service_object(orjson.loads(document), key[0], self._argument_names)
        return len(document), {each.ref.stream: each for each in definition.streams}

    def _keep(self, key: tuple[str, int], found: tuple[int, dict[str, Stream]]) -> None:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = found
                self._room -= found[0]
            while self._room < 0:
                _key, (size, _streams) = self._kept.popitem(last=False)
                self._room += size
