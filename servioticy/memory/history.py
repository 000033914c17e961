"""The History in memory."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from servioticy.domain.model import LastUpdate, StreamKey, Timestamp
from servioticy.memory.state import State
from servioticy.ports.history import VersionedUpdate
from servioticy.ports.partition_store import StoredUpdate


class MemoryHistory:
    """What the pipeline has stored, for readers."""

    def __init__(self, state: State) -> None:
        self._state = state

    def newest(self, stream: StreamKey) -> Timestamp | None:
        """The largest timestamp of a stream's updates, or None."""
        return max((row.timestamp for row in self._of_stream(stream)), default=None)

    def page(
        self, stream: StreamKey, span: tuple[Timestamp, Timestamp], most_rows: int, most_bytes: int
    ) -> list[VersionedUpdate]:
        """The first updates with a timestamp within the span, oldest first.

        They end with the one that reaches `most_rows` or `most_bytes`.
        """
        found: list[VersionedUpdate] = []
        size = 0
        for row in self._of_stream(stream):
            if size >= most_bytes or len(found) >= most_rows:
                break
            if span[0] <= row.timestamp <= span[1]:
                found.append(VersionedUpdate(row.timestamp, row.document, row.version))
                size += len(row.document)
        return found

    def updates_after(
        self, stream: StreamKey, after: Timestamp, limit: int, max_bytes: int
    ) -> list[LastUpdate]:
        """The next updates with a larger timestamp, oldest first, as many as fit, at least one."""
        rows = self._of_stream(stream)
        newer = [LastUpdate(row.timestamp, row.document) for row in rows if row.timestamp > after]
        sizes = accumulate(len(update.document) for update in newer[:limit])
        fitting = sum(1 for size in sizes if size <= max_bytes)
        return newer[: max(1, fitting)]

    def last_update(self, stream: StreamKey) -> VersionedUpdate | None:
        """The stream's last update, or None."""
        self._state.ask_postgres()
        last = self._state.last_updates.get(stream.stream_id)
        if last is None or last.tenant != stream.tenant:
            return None
        return VersionedUpdate(last.timestamp, last.document, last.version)

    def progress(self, partition: int) -> int:
        """The log offset before which everything is stored."""
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

    def backlog(self, partition: int, tenant: int, most: int) -> int:
        """How many records of a tenant wait; not counted further than `most`."""
        return min(most, len(self._waiting(partition, tenant)))

    def _waiting(self, partition: int, tenant: int) -> list[int]:
        return [
            each.offset
            for key, each in list(self._state.put_off.items())
            if key[0] == partition and each.tenant == tenant and key not in self._state.taken_up
        ]

    def verdicts(self, stream: StreamKey) -> list[tuple[str, int, bytes]]:
        """How computations of a composite stream ended: (verdict, count, last one)."""
        self._state.ask_postgres()
        with self._state.lock:
            return sorted(
                (verdict, times, last)
                for (number, verdict), (times, last) in self._state.verdicts.items()
                if number == stream.stream_id
            )

    def processor_us(self, stream: StreamKey) -> int:
        """Microseconds of processor time that a composite stream's code has used."""
        self._state.ask_postgres()
        return self._state.processor_us.get(stream.stream_id, 0)

    def _of_stream(self, stream: StreamKey) -> list[StoredUpdate]:
        self._state.ask_postgres()
        with self._state.lock:
            found = [row for _, row in self._state.updates.values() if row[:2] == stream]
        return sorted(found, key=lambda row: row.timestamp)
