"""Measurements in a file of the process's own, a line of JSON each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from monitoring.model import Measurement


class FilePublisher:
    """Appends to a file; a full one takes the place of the one before (`NAME.1`)."""

    def __init__(self, file: Path, most_bytes: int) -> None:
        self._file, self._most = file, most_bytes
        self._encoder = msgspec.json.Encoder()

    def publish(self, measurements: Sequence[Measurement]) -> None:
        """Append them."""
        lines = self._encoder.encode_lines(measurements)
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._file.open("ab") as file:
            if file.tell() + len(lines) > self._most and file.tell():
                self._file.replace(self._file.with_name(f"{self._file.name}.1"))
                self._file.write_bytes(lines)
            else:
                file.write(lines)

    def close(self) -> None:
        """Nothing is kept open."""
