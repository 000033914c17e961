"""The last updates that a partition remembers, as many bytes of them as there is room for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from servioticy.domain.model import LastUpdate, StreamRef

ENTRY_BYTES = 300
"""About what an entry takes beside its document: names, numbers and the map itself."""
USE_BYTES = 200


class LastUpdates:
    """Of each stream the last update, or that it has none; the least recently used goes first.

    Nothing goes before `trim` is called, so what a batch has asked for stays while it is
    computed.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._known: OrderedDict[StreamRef, LastUpdate | None] = OrderedDict()
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """About what is remembered takes of memory."""
        return self._bytes

    @property
    def known(self) -> Mapping[StreamRef, LastUpdate | None]:
        """What is remembered."""
        return self._known

    def use(self, streams: Iterable[StreamRef]) -> list[StreamRef]:
        """Note that these are needed now; those that are not known."""
        unknown = []
        for ref in streams:
            if ref in self._known:
                self._known.move_to_end(ref)
            else:
                unknown.append(ref)
        return unknown

    def keep(self, stream: StreamRef, last: LastUpdate | None) -> None:
        """This is the stream's last update from now on."""
        before = self._known.get(stream)
        if before is not None or stream in self._known:
            self._bytes -= _size(before)
        self._known[stream] = last
        self._bytes += _size(last)

    def forget(self, streams: Iterable[StreamRef]) -> None:
        """It is read again when needed."""
        for ref in streams:
            if ref in self._known:
                self._bytes -= _size(self._known.pop(ref))

    def of(self, service_objects: set[str]) -> list[StreamRef]:
        """The streams of these Service Objects that are known."""
        return [ref for ref in self._known if ref.service_object in service_objects]

    def trim(self) -> None:
        """Forget what there is no room for."""
        while self._bytes > self._room and self._known:
            _ref, gone = self._known.popitem(last=False)
            self._bytes -= _size(gone)


def _size(last: LastUpdate | None) -> int:
    if last is None:
        return ENTRY_BYTES
    return ENTRY_BYTES + len(last.document) + USE_BYTES * len(last.uses or ())
