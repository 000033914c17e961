"""The definitions in force, parsed once and kept while there is room."""

from __future__ import annotations

from servioticy.documents import BadDocument, Documents
from servioticy.documents.service_objects import ArgumentNames
from servioticy.documents.stored import Understood
from servioticy.model import Definition, Stream
from servioticy.ports import Catalog

ROOM = 64 * 1024 * 1024
"""About how many bytes of memory the parsed definitions may take."""


class Definitions:
    """Each version of a Service Object, understood; the least used are forgotten.

    A version that is not understood any more still has the streams that it declares.
    """

    def __init__(self, catalog: Catalog, argument_names: ArgumentNames, room: int = ROOM) -> None:
        self._catalog = catalog
        self._documents = Documents(argument_names, room)

    def stream(self, service_object: str, version: int, name: str) -> Stream | None:
        """The stream as that version declares it; a version never changes."""
        found = self._documents.known(service_object, version)
        if found is None:
            document = self._catalog.document(service_object, version)
            if document is None:
                return None
            found = self._documents.understood(service_object, version, document)
        return found.streams.get(name)

    def of(self, service_object: str, version: int, document: bytes) -> Definition:
        """That version of a Service Object, whose document is at hand."""
        return self._documents.understood(service_object, version, document).definition

    def that_computes(self, service_object: str, version: int, document: bytes) -> Definition:
        """That version, which is to be put in force. Raises BadDocument if it cannot be."""
        found = self._documents.understood(service_object, version, document)
        if found.problem is not None:
            raise BadDocument(f"version {version} cannot be computed any more: {found.problem}")
        return found.definition

    def known(self, service_object: str, version: int) -> Understood | None:
        """That version if nothing has to be read or parsed for it."""
        return self._documents.known(service_object, version)

    def understood(self, service_object: str, version: int, document: bytes) -> Understood:
        """That version, and what it took to understand it."""
        return self._documents.understood(service_object, version, document)
