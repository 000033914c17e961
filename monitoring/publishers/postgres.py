"""Measurements in a table of the platform's Postgres, of which the oldest rows go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from monitoring.model import Measurement, RuntimePerformance
from servioticy.settings import Settings

if TYPE_CHECKING:
    from servioticy.storage.measurements import MeasurementRows


class PostgresPublisher:
    """Connects at its first measurements, in the role of the program that it is part of."""

    def __init__(self, settings: Settings, program: str, most_rows: int) -> None:
        self._settings, self._program, self._most = settings, program, most_rows
        self._rows: MeasurementRows | None = None
        self._encoder = msgspec.json.Encoder()

    def publish(self, measurements: Sequence[Measurement]) -> None:
        """Add them. Raises Unavailable."""
        if self._rows is None:
            # A program without Postgres has no use for its client.
            from servioticy.bootstrap import connect
            from servioticy.storage.measurements import SECONDS, MeasurementRows, role_of

            role = role_of(self._program)
            self._rows = MeasurementRows(
                connect(self._settings, role, durable=False, statement_seconds=SECONDS)
            )
        self._rows.add([self._row(each) for each in measurements], self._most)

    def close(self) -> None:
        """Let the connection go."""
        if self._rows is not None:
            self._rows.close()

    def _row(self, measured: Measurement) -> tuple[str, str, str, str]:
        sequence = measured.sequence if isinstance(measured, RuntimePerformance) else ""
        kind, purpose = type(measured).__name__, measured.node.node_purpose
        text = self._encoder.encode(measured).decode()
        # Postgres takes no NUL in text; JSON has it as an escape.
        return kind, purpose.replace("\0", ""), sequence.replace("\0", ""), text
