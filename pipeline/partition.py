"""What one task knows of its partition: who is computed here, and the last updates.

The task may trust its memory, because nobody else stores for these streams: the fence
of every transaction proves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pipeline.decided import Decided
from pipeline.stages.fetch import Programs
from servioticy.access import readable
from servioticy.graph import Graph
from servioticy.model import LastUpdate, ServiceObject, StreamRef
from servioticy.ports import Batch, PartitionStore


class Partition:
    """The state of a partition at its stored progress, loaded as it is needed."""

    def __init__(self, number: int, store: PartitionStore, remembered_streams: int) -> None:
        self.number = number
        self.store = store
        self.graph = Graph(())
        self.programs = Programs()
        self.decided = Decided()
        self.next_offset, self.emitted_offset = store.begin(number)
        self.taken = store.forwarded(number)
        """From each partition, the offset before which forwarded records were taken."""
        self._objects: dict[str, ServiceObject] = {}
        self._components: dict[str, frozenset[str]] = {}
        self._lasts: dict[StreamRef, LastUpdate | None] = {}
        self._remembered_streams = remembered_streams

    def service_object(self, service_object: str) -> ServiceObject | int | None:
        """The Service Object if it is computed here, else the partition where it is.

        None where it does not exist, or no version of it is in force yet.
        """
        known = self._objects.get(service_object)
        return self._load(service_object) if known is None else known

    def _load(self, service_object: str) -> ServiceObject | int | None:
        """Load a whole component: what is computed together is known together."""
        placed = {each.id: each for each in self.store.component(service_object)}
        asked = placed.get(service_object)
        if asked is None:
            return None
        if asked.owner_partition != self.number:
            return asked.owner_partition
        here = [
            each.service_object
            for each in placed.values()
            if each.service_object is not None and each.owner_partition == self.number
        ]
        self.forget({each.id for each in here})
        members = frozenset(each.id for each in here)
        for each in here:
            self._objects[each.id] = each
            self._components[each.id] = members
        self.graph.merge(Graph(readable(here)))
        return asked.service_object

    def find_row(self, ref: StreamRef) -> tuple[ServiceObject, int] | None:
        """As `row_of`, for a stream that may no longer be known."""
        owner = self._objects.get(ref.service_object)
        row = owner.stream_ids.get(ref.stream) if owner else None
        return None if owner is None or row is None else (owner, row)

    def row_of(self, ref: StreamRef) -> tuple[ServiceObject, int]:
        """The Service Object of a stream computed here, and the stream's row in the store."""
        owner = self._objects[ref.service_object]
        return owner, owner.stream_ids[ref.stream]

    def forget(self, service_objects: Iterable[str], *, lasts: bool = False) -> None:
        """Load their components anew when needed; with their last updates, if asked."""
        gone: set[str] = set()
        for each in service_objects:
            gone |= self._components.get(each, frozenset({each}))
        self.graph.drop(gone)
        for each in gone:
            self._objects.pop(each, None)
            self._components.pop(each, None)
        if lasts:
            for ref in [each for each in self._lasts if each.service_object in gone]:
                del self._lasts[ref]

    def reload(self, service_object: str) -> None:
        """It has changed, or gone: all who are known in its component are loaded anew.

        The component may have grown by the change.
        """
        component = {each.id for each in self.store.component(service_object)}
        self.forget(component | {service_object})
        for ref in [each for each in self._lasts if each.service_object == service_object]:
            del self._lasts[ref]
        self.programs = Programs()

    def forget_last(self, stream: StreamRef) -> None:
        """Its last update is not so any more."""
        self._lasts.pop(stream, None)

    def is_deleted(self, service_object: str) -> bool:
        """Whether a Service Object that is not computed here has been deleted."""
        placed = self.store.component(service_object)
        return any(each.id == service_object and each.deleted for each in placed)

    def recall(self, streams: Iterable[StreamRef]) -> Mapping[StreamRef, LastUpdate | None]:
        """The last updates of these streams and of all they read; one query at most."""
        needed = dict.fromkeys(streams)
        for ref in list(needed):
            if self.graph.is_composite(ref):
                for each in self.graph.composite(ref)[2].inputs:
                    needed.update(dict.fromkeys(each.members))
        self._forget_oldest(len(needed))
        unknown = [ref for ref in needed if ref not in self._lasts]
        if unknown:
            rows = {ref: self._stream_id(ref) for ref in unknown}
            found = self.store.last_updates([row for row in rows.values() if row is not None])
            for ref, row in rows.items():
                self._lasts[ref] = None if row is None else found.get(row)
        return self._lasts

    def _stream_id(self, ref: StreamRef) -> int | None:
        owner = self._objects.get(ref.service_object)
        return owner.stream_ids.get(ref.stream) if owner else None

    def _forget_oldest(self, needed: int) -> None:
        """Keep memory bounded; what is forgotten is read again when needed."""
        if len(self._lasts) + needed > self._remembered_streams:
            self._lasts.clear()

    def remember(self, lasts: Mapping[StreamRef, LastUpdate]) -> None:
        """These were stored as last updates."""
        self._lasts.update(lasts)

    def commit(self, batch: Callable[[int], Batch]) -> None:
        """Store the batch that begins at our progress, which then moves to its end."""
        content = batch(self.next_offset)
        self.store.store(content)
        self.next_offset = content.next_offset
        self.emitted_offset = max(self.emitted_offset, content.emitted_offset)
