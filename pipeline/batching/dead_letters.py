"""Records that can never succeed: each goes to the dead letters with its reason."""

from __future__ import annotations

import logging

from pipeline.work import Row
from servioticy.domain.letters import clipped
from servioticy.domain.records import DeadLetter
from servioticy.ports.output import Output

log = logging.getLogger("servioticy.pipeline")


class DeadLetters:
    """Makes dead letters of the records of one partition."""

    def __init__(
        self, partition: int, output: Output, passes: tuple[type[Exception], ...]
    ) -> None:
        """`passes` are the errors of the output that no record is to blame for."""
        self._partition = partition
        self._output = output
        self._passes = passes

    def add(self, row: Row, reason: str) -> None:
        """Make a dead letter of the record; it is safe when this returns.

        Where even that fails by a bug, an event names the place of the record in the log.
        """
        reason = clipped(reason)
        facts = {"partition": self._partition, "offset": row.offset, "reason": reason}
        letter = DeadLetter(self._partition, row.offset, reason, row.value or b"")
        try:
            self._output.dead_letter(letter)
            self._output.flush()
        except self._passes:
            raise
        except Exception:
            log.exception("dead_letter_failed", extra=facts)
        else:
            log.warning("dead_letter", extra=facts)

    def add_failed(self, row: Row, error: Exception) -> None:
        """Make a dead letter of a record that met a bug of ours. Called as it is handled."""
        log.exception("record_failed", extra={"partition": self._partition, "offset": row.offset})
        self.add(row, f"failed: {type(error).__name__}: {error}")
