"""The Output in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from memory.state import State
from servioticy.domain.emissions import Emission
from servioticy.domain.letters import fitting
from servioticy.domain.records import DeadLetter, EmittedRecord, LogRecord, read_emitted, write
from servioticy.domain.topics import MAX_MESSAGE_BYTES
from servioticy.errors import Rejected, Unavailable
from servioticy.ports.borders import Crossing


class MemoryOutput:
    """Where the pipeline sends what it stored.

    What is sent while the broker does not answer waits in the client, as with Kafka, and
    `acknowledged` stands still.
    """

    def __init__(self, state: State, partition: int) -> None:
        self._state = state
        self._partition = partition
        self._batches: deque[tuple[int, Sequence[Emission], Sequence[Crossing]]] = deque()
        self._records: list[tuple[int, bytes]] = []
        self._letters: list[DeadLetter] = []
        self.acknowledged = 0

    @property
    def has_more(self) -> bool:
        """Whether something is sent on by the next `poll`; here all is sent at once."""
        return False

    def emit(
        self, next_offset: int, emissions: Sequence[Emission], crossings: Sequence[Crossing] = ()
    ) -> None:
        """Send what was made from the log before this offset, and then what crosses borders."""
        self._batches.append((next_offset, tuple(emissions), tuple(crossings)))
        self.poll()

    def emitted_from(self, next_offset: int) -> list[EmittedRecord]:
        """Return what has been emitted with a place from this offset of the log on, by anybody."""
        self._state.ask_broker()
        return [
            each
            for partition, each in self._state.emitted_to
            if partition == self._partition and each.place and each.place[0] >= next_offset
        ]

    def send_to_log(self, partition: int, record: LogRecord) -> None:
        """Forward a record to another partition. Raises Rejected where it is too large."""
        value = write(record)
        if len(value) > MAX_MESSAGE_BYTES:
            raise Rejected(f"a forwarded record can never be sent: {len(value)} bytes")
        self._records.append((partition, value))
        self.poll()

    def dead_letter(self, letter: DeadLetter) -> None:
        """Send a record that can never succeed to the dead letters."""
        self._letters.append(fitting(letter))
        self.poll()

    def poll(self) -> None:
        """Take note of acknowledgements."""
        if not self._state.broker_answers:
            return
        with self._state.lock:
            while self._batches:
                next_offset, emissions, crossings = self._batches.popleft()
                for key, value in emissions:
                    if self._fits(key, value, next_offset - 1, "emitted"):
                        self._state.emitted_to.append((self._partition, read_emitted(value)))
                for each in crossings:
                    if self._fits(b"", each.record, each.offset, "log"):
                        for partition in each.partitions:
                            self._state.log[partition].append(each.record)
                self.acknowledged = next_offset
            for partition, value in self._records:
                self._state.log[partition].append(value)
            self._records.clear()
            self._state.dead_letters.extend(self._letters)
            self._letters.clear()

    def _fits(self, key: bytes, value: bytes, offset: int, kind: str) -> bool:
        """Tell whether it can be sent; what can never be goes to the dead letters."""
        size = len(key) + len(value)
        if size > MAX_MESSAGE_BYTES:
            reason = f"a record of this kind can never be sent: {size} bytes"
            letter = DeadLetter(self._partition, offset, reason, value, kind=kind)
            self._letters.append(fitting(letter))
        return size <= MAX_MESSAGE_BYTES

    def flush(self) -> None:
        """Wait for the acknowledgement of all that was sent. Raises Unavailable."""
        self.poll()
        if self._batches or self._records or self._letters:
            raise Unavailable("the broker did not acknowledge what was emitted in time")
