"""Reads what Java of the platform measures: `python -m monitoring.applications.java_reading`.

It runs beside the platform's programs while one of them was begun with aspects, and tells whom the
file of aspects names.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from types import FrameType

from monitoring.applications.handler import Handler
from monitoring.configuration import Configuration, NotUnderstood, file_of, read, stamp_of
from monitoring.java_start import READER, pipe_of
from monitoring.publishers.every import Every, Surroundings
from monitoring.publishers.sums import Sums
from monitoring.state import FOLDER
from servioticy import logs, settings
from servioticy.errors import ServioticyError
from servioticy.settings import Settings

log = logging.getLogger("servioticy.monitoring")

LOOK_SECONDS = 1.0
PROGRAM = "pipeline-java"
"""It writes to Postgres in the role that begins with this name, as monitors do."""


class Reading:
    """Reads the pipe in a thread of its own, and follows the file in who is told."""

    def __init__(self, chosen: Settings) -> None:
        self._file = file_of(chosen)
        measurements = chosen.data_path / FOLDER / "measurements" / f"{READER}.ndjson"
        self._here = Surroundings(measurements, Sums(), chosen, PROGRAM, self._file.parent)
        self._stamp = stamp_of(self._file)
        every = self._chosen() or Every(Configuration().publish, self._here)
        self._handler = Handler(pipe_of(chosen.data_path), every)

    def look(self) -> None:
        """Publish by others, if the file says so by now."""
        stamp = stamp_of(self._file)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        every = self._chosen()
        if every is not None:
            self._handler.use(every)

    def close(self) -> None:
        """Publish what waits."""
        self._handler.close()

    def _chosen(self) -> Every | None:
        """None where the file is not understood: who was told goes on to be."""
        try:
            found = read(self._file) if self._stamp is not None else Configuration()
            return Every(found.publish, self._here)
        except NotUnderstood as error:
            told = {"file": str(self._file), "why": str(error)}
            log.error("aspects_not_understood", extra=told)
            return None


def main() -> int:
    """Read until a signal says to end; an expected failure is one line and exit code 1."""
    ends = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        ends.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        chosen = settings.load()
        logs.configure(chosen.log_level)
        reading = Reading(chosen)
    except (ServioticyError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    while not ends.wait(LOOK_SECONDS):
        reading.look()
    reading.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
