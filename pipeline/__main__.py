"""The pipeline program: `python -m pipeline`.

Spark's Java takes longest to start, so it is started first, and Python loads what it needs beside
it: this module and all that it imports have to be light.
"""

from __future__ import annotations

import logging
import signal
import sys

from monitoring import java_start
from pipeline.spark import managers
from pipeline.spark.java import Starting, scratch_folder
from servioticy import logs
from servioticy.embedded import javascript
from servioticy.errors import ServioticyError, SettingsError
from servioticy.metrics.processes import sharing
from servioticy.settings import Settings, load

log = logging.getLogger("servioticy.pipeline")


def main() -> int:
    """Run the query until it fails or a signal ends it; the exit code says which."""
    stopping: list[int] = []
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda number, _frame: stopping.append(number))
    try:
        settings = load()
        logs.configure(settings.log_level)
        return _run(settings, stopping)
    except SettingsError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except ServioticyError as error:
        log.error("pipeline_stops", extra={"why": str(error)})
        return 1


def _run(settings: Settings, stopping: list[int]) -> int:
    managers.check(settings)
    # Or each of Spark's workers would fail.
    javascript.require(settings, settings.sandbox.engine)
    # Spark's workers have Java's environment: it says where they tell of their metrics.
    with (
        sharing() as metrics,
        scratch_folder() as scratch,
        Starting(settings, scratch, added=java_start.at_start(settings, "spark")) as java,
    ):
        # Slow to import: Java goes on meanwhile.
        from pipeline.spark import running

        return running.run(settings, stopping, scratch, java, metrics)


if __name__ == "__main__":
    sys.exit(main())
