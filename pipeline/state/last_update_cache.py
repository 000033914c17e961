"""The last updates that a partition remembers, as many bytes of them as there is room for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from servioticy.domain.model import LastUpdate, StreamRef

ENTRY_BYTES = 200
"""About what an entry takes beside its document: names, numbers and the map itself."""

OBJECT_BYTES = 350
"""The same of a Service Object, beside its entries."""

Known = dict[StreamRef, LastUpdate | None]


class LastUpdateCache:
    """Of each stream the last update, or that it has none.

    Those of a Service Object go together, the least recently used first. Nothing goes before
    `trim` is called, so what a batch has asked for stays while it is computed.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._objects: OrderedDict[str, Known] = OrderedDict()
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """About how many bytes of memory all takes that is remembered."""
        return self._bytes

    def knows(self, ref: StreamRef) -> bool:
        """Whether it is remembered, if only that there is none."""
        return ref in self._objects.get(ref.service_object, ())

    def of(self, streams: Iterable[StreamRef]) -> Known:
        """The last updates of these, which are known; None of one that has none."""
        objects = self._objects
        return {ref: objects[ref.service_object][ref] for ref in streams}

    def use(self, streams: Iterable[StreamRef]) -> list[StreamRef]:
        """Note that these streams are needed now, and return those that are not known."""
        unknown, objects = [], self._objects
        before = None
        for ref in streams:
            id_ = ref.service_object
            known = objects.get(id_)
            if known is None or ref not in known:
                unknown.append(ref)
            elif id_ != before:
                objects.move_to_end(id_)
                before = id_
        return unknown

    def keep(self, found: Iterable[tuple[StreamRef, LastUpdate | None]]) -> None:
        """Remember these as the last updates of their streams; None where there is none."""
        objects, grown = self._objects, 0
        for stream, last in found:
            known = objects.get(stream.service_object)
            if known is None:
                known = objects[stream.service_object] = {}
                grown += OBJECT_BYTES
            if stream in known:
                grown -= _size(known[stream])
            known[stream] = last
            grown += _size(last)
        self._bytes += grown

    def forget(self, streams: Iterable[StreamRef]) -> None:
        """Forget the last updates of these streams; each is read again when needed."""
        for ref in streams:
            known = self._objects.get(ref.service_object, {})
            if ref in known:
                self._bytes -= _size(known.pop(ref))

    def forget_all(self, service_objects: Iterable[str]) -> None:
        """Forget all of these Service Objects."""
        for each in service_objects:
            self._drop(self._objects.pop(each, None))

    def trim(self) -> None:
        """Forget what there is no room for, the least recently used first."""
        while self._bytes > self._room and self._objects:
            self._drop(self._objects.popitem(last=False)[1])

    def _drop(self, gone: Known | None) -> None:
        if gone is not None:
            self._bytes -= OBJECT_BYTES + sum(map(_size, gone.values()))


def _size(last: LastUpdate | None) -> int:
    if last is None:
        return ENTRY_BYTES
    _timestamp, document, state = last
    return ENTRY_BYTES + len(document) + (len(state) if state else 0)
