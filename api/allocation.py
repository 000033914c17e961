"""How glibc gives memory back to the system: not after every document.

orjson writes each document into a buffer that it then shrinks. What that frees lies at the end of
the heap, glibc returns it at once, and asks for it again with the next document: two system calls
each, more than the document costs. With some megabytes kept they take no time.
"""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
"""The options of mallopt(3)."""
KEPT_BYTES = 8 * 1024 * 1024
"""At the end of each heap; there are eight heaps for each core at most."""
AHEAD_BYTES = 1024 * 1024
MAPPED_BYTES = 1024 * 1024
"""What is larger does not go to a heap, but to the system and back."""


def keep_some_memory() -> None:
    """Let this process keep some memory that is free. Elsewhere than on Linux nothing happens."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # another C library than glibc
        return
    for option, value in (
        (TRIM_THRESHOLD, KEPT_BYTES),
        (TOP_PAD, AHEAD_BYTES),
        (MMAP_THRESHOLD, MAPPED_BYTES),
    ):
        mallopt(option, value)
