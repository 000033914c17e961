"""The History in memory."""

from __future__ import annotations

from servioticy.memory.state import State
from servioticy.model import LastUpdate, Timestamp
from servioticy.ports import Labelled, Stored, StoredUpdate


class MemoryHistory:
    """What the pipeline has stored, for readers."""

    def __init__(self, state: State) -> None:
        self._state = state

    def newest(self, stream_id: int) -> Timestamp | None:
        """The largest timestamp of a stream's updates, or None."""
        return max((row.timestamp for row in self._of_stream(stream_id)), default=None)

    def page(
        self, stream_id: int, span: tuple[Timestamp, Timestamp], most_rows: int, most_bytes: int
    ) -> list[Stored]:
        """The first updates with a timestamp within the span, oldest first.

        They end with the one that reaches `most_rows` or `most_bytes`.
        """
        found: list[Stored] = []
        size = 0
        for row in self._of_stream(stream_id):
            if size >= most_bytes or len(found) >= most_rows:
                break
            if span[0] <= row.timestamp <= span[1]:
                found.append(Stored(row.timestamp, row.document, row.version))
                size += len(row.document)
        return found

    def updates_after(self, stream_id: int, after: Timestamp, limit: int) -> list[LastUpdate]:
        """The next updates with a larger timestamp, oldest first."""
        rows = self._of_stream(stream_id)
        newer = [LastUpdate(row.timestamp, row.document) for row in rows if row.timestamp > after]
        return newer[:limit]

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
