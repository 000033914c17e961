"""What streams have used of the platform, counted batch by batch and stored now and then.

What a worker has not stored when it is killed is lost, in favour of who would pay: this is a
measure, not a promise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pipeline.growth import NewRow, Verdict
from servioticy.domain.known_streams import KnownStream
from servioticy.ports.partition_store import PartitionStore, Use


class Accounts:
    """Counts what is stored and computed of each stream since it was last settled."""

    def __init__(self) -> None:
        self._rows: dict[KnownStream, list[int]] = {}
        """Updates from outside, rows, bytes."""
        self._computations: defaultdict[tuple[int, int, int], dict[str, int]] = defaultdict(dict)
        """By tenant, stream and whose stream woke it: how many ended how."""

    def note(self, rows: Iterable[NewRow], endings: Iterable[Verdict]) -> None:
        """Note what a batch has stored, and how its computations ended."""
        counted = self._rows
        for stream, _timestamp, document, _offset, position, _path in rows:
            account = counted.get(stream)
            if account is None:
                account = counted[stream] = [0, 0, 0]
            if not position:
                account[0] += 1
            account[1] += 1
            account[2] += len(document)
        computations = self._computations
        for composite, kind, trigger, _timestamp, _message, _inputs, times in endings:
            ended = computations[composite.tenant, composite.stream_id, trigger.tenant]
            ended[kind] = ended.get(kind, 0) + times

    def settle(self, store: PartitionStore) -> None:
        """Store what has been counted. Raises Unavailable: then it is stored next time."""
        uses: dict[tuple[int, int, int], Use] = {}
        for stream, (updates, rows, size) in self._rows.items():
            own = stream.tenant, stream.stream_id, stream.tenant
            # Known anew meanwhile, a stream is here twice.
            before = uses.get(own, Use(*own))
            uses[own] = before._replace(
                updates=before.updates + updates,
                rows=before.rows + rows,
                bytes=before.bytes + size,
            )
        for key, ended in self._computations.items():
            uses[key] = uses.get(key, Use(*key))._replace(computations=ended)
        if uses:
            store.account([uses[key] for key in sorted(uses)])
        self.forget()

    def forget(self) -> None:
        """Forget what has been counted."""
        self._rows.clear()
        self._computations.clear()
