"""When a program that serves looks through everything for garbage: seldom.

Python looks for objects that only hold each other, and through all that live whenever a quarter
more have come to stay: in the middle of whatever is done, and no other thread does anything
meanwhile. What clients hold lives: with 5,000 subscriptions of one tenant that was 80 to 100 ms
each second and a half, of everybody. What is young is looked through as ever.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

LOOK_SECONDS = 1.0
PAUSE_SECONDS = 60.0
"""Between two looks through everything, at least."""

PART = 0.001
"""Of the time may be spent so."""

GROWN, GROWN_BYTES = 1.25, 32 * 1024 * 1024
"""Where so much more memory is used it may be garbage, and is looked through sooner."""

PART_WHEN_GROWN = 0.02
NEVER = 2**31 - 1


def resident_bytes() -> int:
    """Return the memory of this process."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize()


def memory_given_back() -> bool:
    """Let the system have what the C library keeps of memory that was freed; whether it can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim is not None and bool(trim(0))


class Garbage:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        collect: Callable[[], object] = gc.collect,
        memory: Callable[[], int] = resident_bytes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._collect = collect
        self._memory = memory
        self._clock = clock
        self._looked_at = clock()
        self._took = 0.0
        self._used = 0
        """Memory, in bytes, when it was last looked through."""

    def start(self) -> None:
        """Look from now on, in the running loop. What is there by now stays."""
        self._collect()
        gc.freeze()
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, NEVER)
        self._used = self._memory()
        self._later()

    def look(self) -> None:
        """Look through everything, where it is time to."""
        since = self._clock() - self._looked_at
        is_due = since >= max(PAUSE_SECONDS, self._took / PART)
        if not is_due and not (since >= self._took / PART_WHEN_GROWN and self._has_grown()):
            return
        began = self._clock()
        self._collect()
        self._looked_at = self._clock()
        self._took = self._looked_at - began
        self._used = self._memory()

    def _has_grown(self) -> bool:
        return self._memory() > self._used * GROWN + GROWN_BYTES

    def _later(self) -> None:
        asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._later()
        # Where clients have all files it is not known how much memory is used.
        with suppress(OSError):
            self.look()
