"""The last updates that a partition remembers, as many bytes of them as there is room for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from servioticy.domain.model import LastUpdate, StreamRef

ENTRY_BYTES = 300
"""About what an entry takes beside its document: names, numbers and the map itself."""


class LastUpdateCache:
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
        """About how many bytes of memory all takes that is remembered."""
        return self._bytes

    @property
    def known(self) -> Mapping[StreamRef, LastUpdate | None]:
        """All that is remembered; None is a stream that has no update."""
        return self._known

    def use(self, streams: Iterable[StreamRef]) -> list[StreamRef]:
        """Note that these streams are needed now, and return those that are not known."""
        unknown = []
        for ref in streams:
            if ref in self._known:
                self._known.move_to_end(ref)
            else:
                unknown.append(ref)
        return unknown

    def keep(self, found: Iterable[tuple[StreamRef, LastUpdate | None]]) -> None:
        """Remember these as the last updates of their streams; None where there is none."""
        known, grown = self._known, 0
        for stream, last in found:
            if stream in known:
                grown -= _size(known[stream])
            known[stream] = last
            grown += _size(last)
        self._bytes += grown

    def forget(self, streams: Iterable[StreamRef]) -> None:
        """Forget the last updates of these streams; each is read again when needed."""
        for ref in streams:
            if ref in self._known:
                self._bytes -= _size(self._known.pop(ref))

    def of(self, service_objects: set[str]) -> list[StreamRef]:
        """The streams of these Service Objects that are known."""
        return [ref for ref in self._known if ref.service_object in service_objects]

    def trim(self) -> None:
        """Forget what there is no room for, the least recently used first."""
        while self._bytes > self._room and self._known:
            _ref, gone = self._known.popitem(last=False)
            self._bytes -= _size(gone)


def _size(last: LastUpdate | None) -> int:
    if last is None:
        return ENTRY_BYTES
    _timestamp, document, state = last
    return ENTRY_BYTES + len(document) + (len(state) if state else 0)
