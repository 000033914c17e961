"""A task on a machine that does not reach the store leaves its partition to another one.

Spark sees that a machine is gone, and not that it is cut off from Postgres, or from Kafka, too. A
task there would wait for its claim, and have its slot, for as long as that lasts. To fail is not
enough: Java may be waiting for Kafka, and does not hear of it. So the executor is ended. Its
worker begins another one, and meanwhile the task is somewhere else.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from servioticy.errors import Unavailable

log = logging.getLogger("servioticy.pipeline")

EXECUTOR = b"CoarseGrainedExecutorBackend"
SECONDS = 10.0
PAUSE_SECONDS = 0.5


def reach(
    ask: Callable[[], object],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Ask until there is an answer. Raises Unavailable where there was none for ten seconds."""
    until = clock() + SECONDS
    while True:
        try:
            ask()
            return
        except Unavailable as error:
            if clock() >= until:
                log.warning("store_not_reached", extra={"why": str(error)})
                raise
        sleep(PAUSE_SECONDS)


def end_executor() -> None:
    """End the Java whose daemon has forked this process, where it is an executor."""
    java = _parent(os.getppid())
    if EXECUTOR in Path(f"/proc/{java}/cmdline").read_bytes():
        os.kill(java, signal.SIGTERM)


def _parent(pid: int) -> int:
    told = Path(f"/proc/{pid}/stat").read_text("utf-8")
    return int(told.rpartition(")")[2].split()[1])  # its name stands before, in brackets
