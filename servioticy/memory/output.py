"""The Output in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from servioticy.errors import Unavailable
from servioticy.memory.state import State
from servioticy.messaging.records import DeadLetter, EmittedRecord, LogRecord, write


class MemoryOutput:
    """Where the pipeline sends what it stored.

    What is sent while the broker does not answer waits in the client, as with Kafka, and
    `acknowledged` stands still.
    """

    def __init__(self, state: State, partition: int) -> None:
        self._state = state
        self._partition = partition
        self._batches: deque[tuple[int, Sequence[EmittedRecord]]] = deque()
        self._records: list[tuple[int, bytes]] = []
        self._letters: list[DeadLetter] = []
        self.acknowledged = 0

    def emit(self, next_offset: int, updates: Sequence[EmittedRecord]) -> None:
        """Send what was made from the log before this offset."""
        self._batches.append((next_offset, tuple(updates)))
        self.poll()

    def send_to_log(self, partition: int, record: LogRecord) -> None:
        """Forward a record to another partition."""
        self._records.append((partition, write(record)))
        self.poll()

    def bury(self, letter: DeadLetter) -> None:
        """Send a record that can never succeed to the dead letters."""
        self._letters.append(letter)
        self.poll()

    def poll(self) -> None:
        """Take note of acknowledgements."""
        if not self._state.broker_answers:
            return
        with self._state.lock:
            while self._batches:
                next_offset, updates = self._batches.popleft()
                self._state.emitted.extend(updates)
                self.acknowledged = next_offset
            for partition, value in self._records:
                self._state.log[partition].append(value)
            self._records.clear()
            self._state.dead_letters.extend(self._letters)
            self._letters.clear()

    def flush(self) -> None:
        """Wait for the acknowledgement of all that was sent. Raises Unavailable."""
        self.poll()
        if self._batches or self._records or self._letters:
            raise Unavailable("the broker did not acknowledge what was emitted in time")
