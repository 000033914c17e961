"""The History in memory."""

from __future__ import annotations

from itertools import accumulate

from servioticy.memory.state import State
from servioticy.model import LastUpdate, Timestamp
from servioticy.ports import Labelled, StoredUpdate


class MemoryHistory:
    """What the pipeline has stored, for readers."""

    def __init__(self, state: State) -> None:
        self._state = state

    def updates(self, stream_id: int) -> list[Labelled]:
        """Every update of a stream, oldest first."""
        return [Labelled(row.document, row.version) for row in self._of_stream(stream_id)]

    def updates_after(
        self, stream_id: int, after: Timestamp, limit: int, max_bytes: int
    ) -> list[LastUpdate]:
        """The next updates with a larger timestamp, oldest first, as many as fit, at least one."""
        rows = self._of_stream(stream_id)
        newer = [LastUpdate(row.timestamp, row.document) for row in rows if row.timestamp > after]
        sizes = accumulate(len(update.document) for update in newer[:limit])
        fitting = sum(1 for size in sizes if size <= max_bytes)
        return newer[: max(1, fitting)]

    def last_update(self, stream_id: int) -> Labelled | None:
        """The stream's last update, or None."""
        self._state.ask_postgres()
        last = self._state.last_updates.get(stream_id)
        return None if last is None else Labelled(last.document, last.version)

    def progress(self, partition: int) -> int:
        """The log offset before which everything is stored."""
        self._state.ask_postgres()
        progress = self._state.progress.get(partition)
        return 0 if progress is None else progress.next_offset

    def verdicts(self, stream_id: int) -> list[tuple[str, int, bytes]]:
        """How computations of a composite stream ended: (verdict, count, last one)."""
        self._state.ask_postgres()
        with self._state.lock:
            return sorted(
                (verdict, times, last)
                for (stream, verdict), (times, last) in self._state.verdicts.items()
                if stream == stream_id
            )

    def processor_us(self, stream_id: int) -> int:
        """Microseconds of processor time that a composite stream's code has used."""
        self._state.ask_postgres()
        return self._state.processor_us.get(stream_id, 0)

    def _of_stream(self, stream_id: int) -> list[StoredUpdate]:
        self._state.ask_postgres()
        with self._state.lock:
            found = [row for _, row in self._state.updates.values() if row.stream_id == stream_id]
        return sorted(found, key=lambda row: row.timestamp)
