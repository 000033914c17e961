"""The History in memory."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from memory.state import State
from servioticy.domain.model import LastUpdate, ServiceObjectKey, StreamKey, Timestamp
from servioticy.ports.batches import StoredUpdate
from servioticy.ports.history import OutsideInput, VersionedUpdate


class MemoryHistory:
    """What the pipeline has stored, for readers."""

    def __init__(self, state: State) -> None:
        self._state = state

    def newest(self, stream: StreamKey) -> Timestamp | None:
        """Return the largest timestamp of a stream's updates, or None."""
        return max((row.timestamp for row in self._of_stream(stream)), default=None)

    def page(
        self,
        stream: StreamKey,
        span: tuple[Timestamp, Timestamp],
        most_rows: int,
        most_bytes: int,
        *,
        newest_first: bool = False,
    ) -> list[VersionedUpdate]:
        """Return the first updates with a timestamp within the span, oldest first, or newest.

        They end with the one that reaches `most_rows` or `most_bytes`.
        """
        found: list[VersionedUpdate] = []
        size = 0
        rows = list(self._of_stream(stream))
        begin = max(span[0], self._state.kept_from(self._stored_as(stream)))
        for row in reversed(rows) if newest_first else rows:
            if size >= most_bytes or len(found) >= most_rows:
                break
            if begin <= row.timestamp <= span[1]:
                found.append(VersionedUpdate(row.timestamp, row.document, row.version))
                size += len(row.document)
        return found

    def updates_after(
        self, stream: StreamKey, after: Timestamp, limit: int, max_bytes: int
    ) -> list[LastUpdate]:
        """Return the next updates with a larger timestamp, oldest first, as many as fit, at
        least one.
        """
        begin = max(after + 1, self._state.kept_from(self._stored_as(stream)))
        rows = self._of_stream(stream)
        newer = [LastUpdate(row.timestamp, row.document) for row in rows if row.timestamp >= begin]
        sizes = accumulate(len(update.document) for update in newer[:limit])
        fitting = sum(1 for size in sizes if size <= max_bytes)
        return newer[: max(1, fitting)]

    def last_update(self, stream: StreamKey) -> VersionedUpdate | None:
        """Return the stream's last update, or None."""
        self._state.ask_postgres()
        last = self._state.last_updates.get(self._stored_as(stream))
        if last is None or last.tenant != stream.tenant:
            return None
        return VersionedUpdate(last.timestamp, last.document, last.version)

    def progress(self, partition: int) -> int:
        """Return the log offset before which everything is stored."""
        self._state.ask_postgres()
        progress = self._state.progress.get(partition)
        return 0 if progress is None else progress.next_offset

    def stored(self, partition: int, tenants: Iterable[int]) -> tuple[int, dict[int, int]]:
        """Progress, and for those of the tenants that have any the first record put off."""
        progress = self.progress(partition)
        first = {}
        for tenant in tenants:
            offsets = self._waiting(partition, tenant)
            if offsets:
                first[tenant] = min(offsets)
        return progress, first

    def put_off(self, partition: int, tenant: int, most: int) -> int:
        """Return how many records of a tenant wait; not counted further than `most`."""
        return min(most, len(self._waiting(partition, tenant)))

    def held(self, partition: int, tenant: int, most: int) -> int:
        """Return how many records of a tenant wait for others; not counted further than `most`."""
        rows = list(self._state.put_off.items())
        held = [key for key, each in rows if each.held and each.tenant == tenant]
        return min(most, sum(key[0] == partition for key in held))

    def inputs_from_outside(self, reader: ServiceObjectKey) -> list[OutsideInput]:
        """Return what a Service Object reads of other tenants, sorted by name."""
        self._state.ask_postgres()
        with self._state.lock:
            return [
                OutsideInput(
                    source, row.is_open, row.fed_in is not None, row.awaits is not None, row.since
                )
                for (id_, source), row in sorted(self._state.inputs_from_outside.items())
                if (row.tenant, id_) == reader
            ]

    def _waiting(self, partition: int, tenant: int) -> list[int]:
        return [
            each.offset
            for key, each in list(self._state.put_off.items())
            if key[0] == partition
            and each.tenant == tenant
            and key not in self._state.taken_up
            and not each.held
        ]

    def kept(self, stream: StreamKey, key: bytes) -> bytes | None:
        """Return what a composite stream keeps under a key, if anything."""
        self._state.ask_postgres()
        with self._state.lock:
            found = self._state.kept_entries.get((self._stored_as(stream), key))
            return None if found is None else found.value

    def verdicts(self, stream: StreamKey) -> list[tuple[str, int, bytes]]:
        """Return how computations of a composite stream ended: (verdict, count, last one)."""
        self._state.ask_postgres()
        with self._state.lock:
            stored_as = self._stored_as(stream)
            return sorted(
                (verdict, times, last)
                for (number, verdict), (times, last) in self._state.verdicts.items()
                if number == stored_as
            )

    def processor_us(self, stream: StreamKey) -> int:
        """Return the microseconds of processor time that a composite stream's code has used."""
        self._state.ask_postgres()
        return self._state.processor_us.get(self._stored_as(stream), 0)

    def _stored_as(self, stream: StreamKey) -> int:
        """Under which number the stream's updates are stored; 0: it is gone."""
        number = self._state.stored_as(stream.stream_id)
        return number if number in self._state.readable() else 0

    def _of_stream(self, stream: StreamKey) -> list[StoredUpdate]:
        self._state.ask_postgres()
        with self._state.lock:
            stored = (stream.tenant, self._stored_as(stream))
            found = [row for _, row in self._state.updates.values() if row[:2] == stored]
        return sorted(found, key=lambda row: row.timestamp)
