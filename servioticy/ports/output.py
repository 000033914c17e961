"""Where the pipeline sends what it stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from servioticy.domain.emissions import Emission
from servioticy.domain.records import DeadLetter, EmittedRecord, LogRecord
from servioticy.ports.borders import Crossing


class Output(Protocol):
    """Where the pipeline sends what it stored."""

    acknowledged: int
    """Everything made from the log before this offset is where it was sent, what crosses borders
    too."""

    @property
    def has_more(self) -> bool:
        """Whether something is sent on by the next `poll` once what is under way has arrived."""

    def emit(
        self, next_offset: int, emissions: Sequence[Emission], crossings: Sequence[Crossing] = ()
    ) -> None:
        """Send what was made from the log before this offset.

        What crosses borders goes to the log, once all that is emitted here is acknowledged and
        what earlier calls sent is there. An update that can never be sent counts as sent: it goes
        to the dead letters.
        """

    def emitted_from(self, next_offset: int) -> list[EmittedRecord]:
        """Return what has been emitted with a place from this offset of the log on, by anybody."""

    def send_to_log(self, partition: int, record: LogRecord) -> None:
        """Forward a record to another partition. Raises Rejected where it is too large."""

    def dead_letter(self, letter: DeadLetter) -> None:
        """Send a record that can never succeed to the dead letters, cut if it is too large."""

    def poll(self) -> None:
        """Take note of acknowledgements. Raises Unavailable after a refusal."""

    def flush(self) -> None:
        """Wait for the acknowledgement of all that was sent. Raises Unavailable."""
