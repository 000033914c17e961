"""Which kind a request is of: each has threads of its own."""

from __future__ import annotations

READS = frozenset({"GET", "HEAD", "OPTIONS"})
SENDING = ("updates", "batches")
"""Kinds of requests that send updates."""


def kind(method: str, path: str) -> str:
    """Return which pool a request belongs to.

    Whatever waits for the right to change is a change, but for claims: they come from whoever
    is near a device, and many at once, and shall not take the turns of tenants.
    """
    if method in READS:
        return "reads"
    names = path.strip("/").split("/")
    if method == "POST" and names == ["claims"]:
        return "claims"
    asks = names == ["lastUpdates"] or (len(names) == 4 and names[3] == "search")
    if method == "POST" and asks:
        return "reads"
    if method == "PUT" and len(names) == 3 and names[1] == "streams":
        return "updates"
    return "batches" if method == "POST" and names[-1] == "updates" else "changes"
