"""One thread that waits for the pipeline in place of all reads of the process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable

from api.http.read_after_write import headers_of
from ingest.progress import (
    FIRST_PAUSE_SECONDS,
    GROWTH,
    MAX_PAUSE_SECONDS,
    Awaited,
    Ended,
    How,
    Progress,
    Waiting,
)

log = logging.getLogger("api")


class Waiter:
    """Tells reads, in the event loop, when what they wait for is stored."""

    def __init__(
        self, progress: Progress, seconds: float, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._progress = progress
        self._seconds = seconds
        self._loop = loop
        self._new: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="waiter", daemon=True).start()

    def wait(self, awaited: Awaited, done: Callable[[dict[str, str]], None]) -> None:
        """Tell `done` the headers for the answer, once what is awaited is stored."""

        def tell(ended: Ended) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: we are stopping
                self._loop.call_soon_threadsafe(done, headers_of(ended))

        self._new.put(Waiting(awaited, time.monotonic() + self._seconds, tell))

    def stop(self) -> None:
        """Let the thread end."""
        self._new.put(None)

    def _work(self) -> None:
        reads: list[Waiting] = []
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                new = self._new.get(timeout=pause if reads else None)
                if new is None:
                    return
                reads.append(new)
                pause = FIRST_PAUSE_SECONDS
            except queue.Empty:
                pause = min(pause * GROWTH, MAX_PAUSE_SECONDS)
            while (more := self._waiting_too()) is not None:
                reads.append(more)
            reads = self._look(reads)
            if reads:
                time.sleep(FIRST_PAUSE_SECONDS)  # however many come, we ask no more often

    def _waiting_too(self) -> Waiting | None:
        if self._new.empty():
            return None
        found = self._new.get()
        if found is None:  # for the next round: we are stopping
            self._new.put(None)
        return found

    def _look(self, reads: list[Waiting]) -> list[Waiting]:
        try:
            return self._progress.look(reads, time.monotonic())
        except Exception:
            log.exception("waiting_failed")
            for each in reads:
                each.done(Ended(How.UNKNOWN))
            return []
