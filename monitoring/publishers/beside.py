"""A publisher that others wait for nothing of: in a thread of its own, behind a bounded queue."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from monitoring.model import Measurement
from monitoring.outbox import Outbox
from monitoring.publishers.publisher import Publisher
from servioticy.errors import Unavailable

log = logging.getLogger("servioticy.monitoring")

AT_ONCE = 1_000
ATTEMPTS = 5
"""Of one load; a receiver that is away for longer has lost it."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 10.0
CLOSE_SECONDS = 2.0
"""So long an ending program waits for what is left."""


class Beside:
    """Publishes by another publisher. Its queue drops what comes while it is full, and counts it.

    A load that meets Unavailable is tried again; anything else costs it.
    """

    def __init__(
        self,
        name: str,
        publisher: Publisher,
        most_bytes: int,
        quiet: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """While `quiet`, nothing is measured of the thread."""
        self._name, self._publisher, self._quiet = name, publisher, quiet
        self._queue = Outbox(most_bytes)
        self._lost = 0
        self._came, self._ends = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"publish-{name}", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Measurements that its receiver was not told of."""
        return self._queue.dropped + self._lost

    def publish(self, measurements: Sequence[Measurement]) -> None:
        """Let it publish them later. Does not wait."""
        for each in measurements:
            self._queue.put(each)
        self._came.set()

    def close(self) -> None:
        """Let it end after what it has, and wait for that a little."""
        self._ends.set()
        self._came.set()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        with self._quiet():
            while not self._ends.is_set():
                self._came.wait()
                self._came.clear()
                while some := self._queue.take(AT_ONCE):
                    self._send(some)
            try:
                self._publisher.close()
            except Exception:  # whatever it stands on may raise
                log.exception("publisher_not_closed", extra={"publisher": self._name})

    def _send(self, some: list[Measurement]) -> None:
        pause, why = FIRST_PAUSE_SECONDS, ""
        for _ in range(ATTEMPTS):
            try:
                self._lost += self._publisher.publish(some) or 0
                return
            except Unavailable as error:
                why = str(error)
            except Exception as error:  # noqa: BLE001  whatever it stands on may raise
                why = repr(error)
                break
            if self._ends.wait(pause):
                break
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        self._lost += len(some)
        about = {"publisher": self._name, "measurements": len(some), "why": why}
        log.warning("measurements_lost", extra=about)
