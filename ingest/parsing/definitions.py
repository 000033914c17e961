"""The definitions in force, parsed once and kept while there is room."""

from __future__ import annotations

from typing import Any

from ingest.parsing.document_parser import DocumentParser
from servioticy.apart.asking import TookTooLong
from servioticy.domain.documents import BadDocument, Documents
from servioticy.domain.documents.codes import NOT_UNDERSTOOD, TOO_SLOW
from servioticy.domain.documents.limits import Laborious, Meter
from servioticy.domain.documents.service_objects import ArgumentNames, parse_service_object
from servioticy.domain.documents.stored import Understood, at_once
from servioticy.domain.model import Definition, Stream
from servioticy.ports.addresses import Address
from servioticy.ports.service_objects import ServiceObjects, VersionKey

ROOM = 64 * 1024 * 1024
"""About how many bytes of memory the parsed definitions may take."""
AT_ONCE = 0.03
"""Of what one document may take, the part that is parsed at once: some milliseconds."""


class Definitions:
    """Each version of a Service Object, understood; the least used are forgotten.

    A version that is not understood any more still has the streams that it declares.
    """

    def __init__(
        self,
        service_objects: ServiceObjects,
        argument_names: ArgumentNames,
        new: DocumentParser,
        stored: DocumentParser,
        room: int = ROOM,
    ) -> None:
        """Two parsers: who posts large documents keeps nobody from those that are stored."""
        self._service_objects = service_objects
        self._argument_names = argument_names
        self._new, self._stored = new, stored
        self._documents = Documents(at_once(self._parse_quickly), room)

    def forget_unused(self, seconds: float) -> int:
        """Forget versions that nobody has asked for, for so long; return how many."""
        return self._documents.forget_unused(seconds)

    def parsed(self, document: dict[str, Any], service_object: str) -> Definition:
        """Return a document as the Service Object of that id.

        Raises BadDocument, or Unavailable.
        """
        try:
            return self._parse_quickly(document, service_object, Meter())
        except Laborious:
            pass
        with self._new.turn():
            try:
                return self._new.parse(document, service_object, Meter())
            except TookTooLong as error:
                reason = "The document takes too long to understand"
                raise BadDocument(reason, "", TOO_SLOW) from error

    def _parse_quickly(
        self, document: dict[str, Any], service_object: str, meter: Meter
    ) -> Definition:
        """Parse it in the thread that asks. Raises Laborious where that takes too long."""
        small = Meter(AT_ONCE)
        try:
            return parse_service_object(document, service_object, self._argument_names, small)
        finally:
            meter.note(small)

    def stream(self, address: Address, name: str) -> Stream | None:
        """Return the stream as the version at this address declares it.

        A version never changes.
        """
        found = self._at(address)
        return None if found is None else found.streams.get(name)

    def streams(self, address: Address) -> list[str]:
        """Return the names of the streams that the version at this address declares."""
        found = self._at(address)
        return [] if found is None else [*found.streams]

    def _at(self, address: Address) -> Understood | None:
        service_object, version = address.service_object, address.version
        if service_object is None:
            return None
        found = self.known(service_object, version)
        if found is None:
            key = VersionKey(address.tenant, service_object, version)
            document = self._service_objects.document(key)
            if document is None:
                return None
            found = self.understood(service_object, version, document)
        return found

    def of(self, service_object: str, version: int, document: bytes) -> Definition:
        """That version of a Service Object, whose document is at hand."""
        return self.understood(service_object, version, document).definition

    def that_computes(self, service_object: str, version: int, document: bytes) -> Definition:
        """That version, which is to be put in force. Raises BadDocument if it cannot be."""
        found = self.understood(service_object, version, document)
        if found.problem is not None:
            reason = f"version {version} cannot be computed any more: {found.problem}"
            raise BadDocument(reason, "", NOT_UNDERSTOOD)
        return found.definition

    def known(self, service_object: str, version: int) -> Understood | None:
        """That version if nothing has to be read or parsed for it."""
        return self._documents.known(service_object, version)

    def understood(self, service_object: str, version: int, document: bytes) -> Understood:
        """That version, and what it took to understand it. Raises Unavailable."""
        try:
            return self._documents.understood(service_object, version, document)
        except Laborious:
            pass
        with self._stored.turn():
            # Somebody else may have had it parsed while this thread waited: then it is known.
            return self._documents.understood(
                service_object, version, document, self._stored.parse
            )
