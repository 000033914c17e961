"""What one task knows of its partition: who is computed here, and the last updates.

The task may trust its memory, because nobody else stores for these streams: the fence
of every transaction proves it.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pipeline.state.decided import Decided
from pipeline.state.last_updates import LastUpdates
from pipeline.state.programs import Programs
from pipeline.work import Work
from servioticy.domain.access import readable
from servioticy.domain.graph import Graph
from servioticy.domain.model import Definition, LastUpdate, ServiceObject, StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.partition_store import Batch, PartitionStore

MAX_DEFINITION_BYTES = 512 * 1024 * 1024
"""Of Service Objects known at once, estimated; beyond it whole components are forgotten."""

STREAM_BYTES = 1500
CHANNEL_BYTES = 500
INPUT_BYTES = 250
"""About what they take of memory in the definition, the graph and the programs."""


class Partition:
    """The state of a partition at its stored progress, loaded as it is needed."""

    def __init__(self, number: int, store: PartitionStore, remembered_bytes: int) -> None:
        self.number = number
        self.store = store
        self.graph = Graph(())
        self.programs = Programs()
        self.decided = Decided()
        self.next_offset, self.emitted_offset = store.begin(number)
        self.forwarded_offsets = store.forwarded(number)
        """From each partition, the offset before which forwarded records were taken."""
        self.waiting = Counter(store.waiting(number))
        """How many records of each tenant have been put off."""
        self.emitted_late: list[int] = []
        """Records that had been put off: what came of them is emitted and acknowledged."""
        self._objects: dict[str, ServiceObject] = {}
        self._components: dict[str, frozenset[str]] = {}
        self._loading: defaultdict[int, float] = defaultdict(float)
        self._weights: dict[str, int] = {}
        self._weight = 0
        self._used: dict[str, int] = {}
        self._turn = 0
        self._last_updates = LastUpdates(remembered_bytes)

    def service_object(self, service_object: str) -> ServiceObject | int | None:
        """The Service Object if it is computed here, else the partition where it is.

        None where it does not exist, or no version of it is in force yet.
        """
        known = self._objects.get(service_object)
        if known is None:
            return self._load(service_object)
        self._used[service_object] = self._turn
        return known

    def _load(self, service_object: str) -> ServiceObject | int | None:
        """Load a whole component: what is computed together is known together."""
        began = time.monotonic()
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
            self._used[each.id] = self._turn
            self._weights[each.id] = weight(each.definition)
            self._weight += self._weights[each.id]
        self.graph.merge(Graph(readable(here)))
        self._note_spent(here, time.monotonic() - began)
        return asked.service_object

    def _note_spent(self, service_objects: Sequence[ServiceObject], seconds: float) -> None:
        """Each tenant pays for its own part of a component."""
        whole = sum(self._weights[each.id] for each in service_objects) or 1
        for each in service_objects:
            self._loading[each.tenant] += seconds * self._weights[each.id] / whole

    def pop_loading(self) -> Mapping[int, float]:
        """The seconds that loading has taken since this was last asked, by tenant."""
        spent, self._loading = self._loading, defaultdict(float)
        return spent

    def find_row(self, ref: StreamRef) -> tuple[ServiceObject, int] | None:
        """As `row_of`, for a stream that may no longer be known."""
        owner = self._objects.get(ref.service_object)
        row = owner.stream_ids.get(ref.stream) if owner else None
        return None if owner is None or row is None else (owner, row)

    def row_of(self, ref: StreamRef) -> tuple[ServiceObject, int]:
        """The Service Object of a stream computed here, and the stream's row in the store."""
        owner = self._objects[ref.service_object]
        return owner, owner.stream_ids[ref.stream]

    def forget(self, service_objects: Iterable[str], *, last_updates: bool = False) -> None:
        """Load their components anew when needed; with their last updates, if asked."""
        gone: set[str] = set()
        for each in service_objects:
            gone |= self._components.get(each, frozenset({each}))
        self.graph.drop(gone)
        self.programs.drop(gone)
        for each in gone:
            self._objects.pop(each, None)
            self._components.pop(each, None)
            self._used.pop(each, None)
            self._weight -= self._weights.pop(each, 0)
        if last_updates:
            self._last_updates.forget(self._last_updates.of(gone))

    def reload(self, service_object: str) -> None:
        """It has changed, or gone: all who are known in its component are loaded anew.

        The component may have grown by the change.
        """
        component = {each.id for each in self.store.component(service_object)}
        self.forget(component | {service_object})
        self._last_updates.forget(self._last_updates.of({service_object}))

    def forget_last(self, stream: StreamRef) -> None:
        """Its last update is not so any more."""
        self._last_updates.forget([stream])

    def tenant_of(self, service_object: str) -> int | None:
        """Whose it is, wherever it is computed; None where it does not exist."""
        found = self.store.owner(service_object)
        return found and found[0]

    def owner_of(self, service_object: str) -> int | None:
        """The partition where it is computed, or will be; None where it does not exist."""
        found = self.store.owner(service_object)
        return found and found[1]

    def note_waiting(self, work: Work) -> None:
        """This work is stored: so many more, or fewer, records wait."""
        self.waiting.update(each.tenant for each in work.put_off)
        if work.late:
            self.waiting.subtract(each.tenant for each in work.late)
            self.waiting = +self.waiting

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
        unknown = self._last_updates.use(needed)
        if unknown:
            rows = {ref: self._stream_id(ref) for ref in unknown}
            found = self.store.last_updates([row for row in rows.values() if row is not None])
            for ref, row in rows.items():
                self._last_updates.keep(ref, None if row is None else found.get(row))
        return self._last_updates.known

    def _stream_id(self, ref: StreamRef) -> int | None:
        owner = self._objects.get(ref.service_object)
        return owner.stream_ids.get(ref.stream) if owner else None

    def remember(self, last_updates: Mapping[StreamRef, LastUpdate]) -> None:
        """These were stored as last updates."""
        for ref, last in last_updates.items():
            self._last_updates.keep(ref, last)

    def trim(self) -> None:
        """Between two batches: forget what there is no room for, the least recently used first.

        A component goes as a whole, with the time of the one of its members used last.
        """
        self._turn += 1
        self._last_updates.trim()
        if self._weight <= MAX_DEFINITION_BYTES:
            return
        last_used = {
            members: max(self._used.get(each, 0) for each in members)
            for members in set(self._components.values())
        }
        for members in sorted(last_used, key=lambda each: last_used[each]):
            if self._weight <= MAX_DEFINITION_BYTES * 3 // 4:
                break
            self.forget(members)

    def commit(self, batch: Callable[[int], Batch]) -> None:
        """Store the batch that begins at our progress, which then moves to its end."""
        content = replace(batch(self.next_offset), emitted_late=tuple(self.emitted_late))
        if content.next_offset < self.next_offset:
            raise Unavailable("this has been stored already: the partition is begun anew")
        self.store.store(content)
        self.emitted_late.clear()
        self.next_offset = content.next_offset
        self.emitted_offset = max(self.emitted_offset, content.emitted_offset)


def weight(definition: Definition) -> int:
    """About how many bytes of memory a definition takes, with the graph and programs of it."""
    return STREAM_BYTES * len(definition.streams) + sum(
        INPUT_BYTES * sum(len(each.members) for each in stream.composite.inputs)
        + sum(CHANNEL_BYTES + 4 * len(each.code or "") for each in stream.composite.channels)
        + CHANNEL_BYTES * len(stream.composite.references)
        for stream in definition.streams
        if stream.composite is not None
    )
