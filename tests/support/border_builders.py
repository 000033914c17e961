"""A provider and who reads it over a border, for the suites of the ports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from port_builders import PARTITIONS, Storage, a_service_object, document

from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.borders import OutsideReader
from servioticy.ports.change_store import Change
from servioticy.ports.effects import Activate, BeginInputs, Effect, EndInputs, Read

A, B = StreamRef("x", "a"), StreamRef("x", "b")


class Border:
    """The provider's public `x` has the streams `a` and `b`; `r` of another tenant reads both.

    `x` is computed in partition 0 and `r` in partition 1. Nothing is in force yet.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.store = storage.store
        self.provider = storage.tenant("provider")
        self.reader = storage.tenant("reader")
        self._next = {partition: self.store.begin(partition).next_offset for partition in (0, 1)}
        self._changes = 0
        self.create(self.provider, "x", public=True)
        self.creation = self.create(self.reader, "r", A, B)

    def create(self, tenant: int, id_: str, *reads: StreamRef, public: bool = False) -> Change:
        """Store a Service Object."""
        groups = tuple((each.stream, each) for each in reads)
        new = a_service_object(tenant, id_, groups, public)
        return self.storage.change_store.create(new, PARTITIONS)

    def put(self, partition: int, effect: Effect | None = None, **more: Any) -> None:
        """Store a batch of one record."""
        first = self._next[partition]
        self._next[partition] = first + 1
        emitted = more.pop("emitted_offset", 0)
        self.store.store(Batch(partition, first, first + 1, emitted, effect=effect, **more))

    def activate(
        self,
        id_: str = "r",
        members: Sequence[StreamRef] = (A, B),
        kept: Sequence[StreamRef] = (A,),
        partition: int = 1,
    ) -> None:
        """Let the first version be in force, by a change of its own."""
        self._changes += 1
        effect = Activate(id_, 1, self._changes, tuple(members), tuple(kept))
        self.put(partition, effect)

    def in_force(self) -> None:
        """Let both be in force."""
        self.activate("x", (), (), 0)
        self.activate()

    def send(self, timestamp: int, stream: str = "a", of: str = "x") -> None:
        """Store an update of the provider's."""
        number = self.storage.stored_as(of, stream)
        row = StoredUpdate(
            self.provider, number, timestamp, document(timestamp), 1, self._next[0], 0
        )
        self.put(0, updates=[row])

    def begin(
        self,
        offset: int,
        last: int | None = None,
        *,
        partition: int = 1,
        source: int = 0,
        streams: Sequence[StreamRef] = (A,),
        readers: Sequence[str] = ("r",),
        **more: Any,
    ) -> None:
        """A Begin with the same last update of each stream comes to a partition."""
        text = None if last is None else document(last)
        lasts = tuple((each, last, text) for each in streams)
        place = (source, offset)
        effect = BeginInputs(self.reader, tuple(readers), self.provider, lasts, place, **more)
        self.put(partition, effect)

    def end(self, offset: int, *, partition: int = 1, source: int = 0, **more: Any) -> None:
        """An End of the stream `a` comes to a partition."""
        self.put(partition, EndInputs(self.reader, ("r",), (A,), (source, offset), **more))

    def read(
        self,
        change: int,
        *sources: StreamRef,
        reader: str = "r",
        to_partition: int = 1,
        is_open: bool = True,
        ends: bool = True,
    ) -> None:
        """A record of who reads comes to the provider's partition."""
        rows = tuple(
            OutsideReader(reader, self.reader, each, to_partition, change, is_open)
            for each in sources
        )
        self.put(0, Read(reader, self.provider, change, rows, ends))

    def last(self, stream: StreamRef = A, reader: str = "r") -> LastUpdate | None:
        """What a reader knows as the last update of a stream."""
        return self.store.last_inputs([(reader, stream)]).get((reader, stream))

    def fed(self, partition: int = 1, stream: StreamRef = A) -> list[tuple[str, int, bool]]:
        """Who is fed in a partition with a stream: where each is computed, and if its
        tenant awaits something here."""
        channel = self.store.channels(partition, [stream]).get(stream)
        awaits = self.store.awaiting(partition)
        return [
            (each.reader, each.owner_partition, each.tenant in awaits)
            for each in (channel.readers if channel else ())
        ]

    def is_open(self, stream: StreamRef = A) -> bool:
        """Whether `r` may read a stream."""
        (found,) = self.store.service_objects(["r"])
        return found.inputs[stream].is_open
