"""Which kind a request is of: each has threads of its own."""

from __future__ import annotations

from ingest.updates import LARGE_BYTES
from servioticy.domain.console import API, is_below

ASKING = ("/lastUpdates", "/search")
"""Reads that have a body."""
READS = frozenset({"GET", "HEAD", "OPTIONS"})
LONG_ONES = frozenset({"search", "aggregates", "export"})
"""Reads of a stream that may look at all of it."""
MANY = ("updates", "atoms")
"""What comes in batches."""
TRY = "try"
"""What is asked of a Service Object by whoever tries a change: it stores nothing."""
TRIES = (f"/{TRY}", "/check")
"""What pages ask it by."""
READING = ("reads", "long")
"""Kinds of requests that read."""
SENDING = ("updates", "batches")
"""Kinds of requests that send updates."""
LARGE = "large"
"""The kind of changes that bring much, and may take long."""


def kind(method: str, path: str, size: int = 0) -> str:
    """Return which pool a request belongs to, with a body of so many bytes.

    Whatever waits for the right to change is a change, but for claims: they come from whoever
    is near a device, and many at once, and shall not take the turns of tenants. Reads that may be
    long have few threads, and all others theirs, and so have changes that take long as they bring
    much: documents of thousands of programs wait for each other, and for what nobody else wants
    of the processor. Large updates wait for the log as batches do, and take their threads.
    """
    if method == "POST" and is_below(path) and path.endswith(TRIES):
        return "long"  # a page that tries, or what it asks
    if is_below(path):
        path = path.removeprefix(API)
        if method not in READS and not path.endswith(ASKING):
            return _change(size)
    names = path.strip("/").split("/")
    asks = method == "POST" and (names == ["lastUpdates"] or names[3:] == ["search"])
    if method == "POST" and names[1:] == [TRY]:
        return "long"
    if method in READS or asks:
        is_long = len(names) == 4 and names[1] == "streams" and names[3] in LONG_ONES
        return "long" if is_long else "reads"
    if method == "POST" and names == ["claims"]:
        return "claims"
    if method == "PUT" and len(names) == 3 and names[1] == "streams":
        return "updates" if size < LARGE_BYTES else "batches"
    return "batches" if method == "POST" and names[-1] in MANY else _change(size)


def _change(size: int) -> str:
    return "changes" if size < LARGE_BYTES else LARGE
