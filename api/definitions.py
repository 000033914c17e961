"""The definitions in force, parsed once and kept while there is room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from api.reading import Reader, TookTooLong
from servioticy.domain.documents import BadDocument, Documents
from servioticy.domain.documents.codes import NOT_UNDERSTOOD, TOO_SLOW
from servioticy.domain.documents.limits import Laborious, Meter
from servioticy.domain.documents.service_objects import ArgumentNames
from servioticy.domain.documents.stored import Understood, parsing
from servioticy.domain.model import Definition, Stream
from servioticy.ports import Catalog

ROOM = 64 * 1024 * 1024
"""About how many bytes of memory the parsed definitions may take."""


AT_ONCE = 0.03
"""Of what one document may take, the part that is read at once: some milliseconds."""


class Definitions:
    """Each version of a Service Object, understood; the least used are forgotten.

    A version that is not understood any more still has the streams that it declares.
    """

    def __init__(
        self,
        catalog: Catalog,
        argument_names: ArgumentNames,
        room: int = ROOM,
        readers: Callable[[], Reader] = Reader,
    ) -> None:
        self._catalog = catalog
        self._here = parsing(argument_names)
        # Who posts large documents keeps nobody from those that are stored.
        self._new, self._stored = readers(), readers()
        self._documents = Documents(self._read_stored, room)

    def parsed(self, document: dict[str, Any], service_object: str) -> Definition:
        """A document as the Service Object of that id. Raises BadDocument, or Unavailable."""
        try:
            return self._read(document, service_object, Meter(), self._new)
        except TookTooLong as error:
            reason = "The document takes too long to understand"
            raise BadDocument(reason, "", TOO_SLOW) from error

    def _read_stored(
        self, document: dict[str, Any], service_object: str, meter: Meter
    ) -> Definition:
        return self._read(document, service_object, meter, self._stored)

    def _read(
        self, document: dict[str, Any], service_object: str, meter: Meter, reader: Reader
    ) -> Definition:
        """Read it in the thread that asks if that is quickly done, else in the reader."""
        small = Meter(AT_ONCE)
        try:
            definition = self._here(document, service_object, small)
        except Laborious:
            return reader.read(document, service_object, meter)
        except BadDocument:
            meter.note(small)
            raise
        meter.note(small)
        return definition

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
            reason = f"version {version} cannot be computed any more: {found.problem}"
            raise BadDocument(reason, "", NOT_UNDERSTOOD)
        return found.definition

    def known(self, service_object: str, version: int) -> Understood | None:
        """That version if nothing has to be read or parsed for it."""
        return self._documents.known(service_object, version)

    def understood(self, service_object: str, version: int, document: bytes) -> Understood:
        """That version, and what it took to understand it."""
        return self._documents.understood(service_object, version, document)
