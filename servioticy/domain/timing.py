"""When a composite stream computes, and what its inputs are: the paper's section 3.4.

These are the rules that the engine itself needs; how an evaluator computes by them, and with
which timestamp, is in `sandbox/trees.py` and `sandbox/guest/realm/trees.js`.
"""

from __future__ import annotations

from collections.abc import Iterable

from servioticy.domain.model import LastUpdate, StreamRef, Timestamp


def triggers(trigger: Timestamp, last_output: Timestamp | None) -> bool:
    """Tell whether an arriving update makes a composite stream compute.

    Only the arriving update is compared with the stream's own last output; the
    other inputs are read as they stand, so an idle sensor cannot hold a pipeline.
    An equal timestamp means another branch of the same tree got here first.
    """
    return last_output is None or trigger > last_output


def becomes_last(timestamp: Timestamp, last: Timestamp | None) -> bool:
    """Tell whether a stored update is its stream's last one from now on; equal overwrites."""
    return last is None or timestamp >= last


def newest(
    members: Iterable[tuple[StreamRef, LastUpdate | None]],
) -> tuple[StreamRef, LastUpdate] | None:
    """Return the value of a group: its newest update, the first of equals."""
    best: tuple[StreamRef, LastUpdate] | None = None
    for stream, last in members:
        if last is not None and (best is None or last.timestamp > best[1].timestamp):
            best = stream, last
    return best


MILLISECONDS_FROM = 100_000_000_000
"""A timestamp this large counts milliseconds, a smaller one seconds (or ticks of its own)."""


def too_far_ahead(timestamp: Timestamp, now_seconds: float, allowed_seconds: float) -> bool:
    """Tell whether a device's clock is further ahead of ours than the platform accepts.

    An update from the future would silence every later trigger of what is
    computed from it, so a limit protects its tenant.
    """
    unit = 1000 if timestamp >= MILLISECONDS_FROM else 1
    return timestamp > (now_seconds + allowed_seconds) * unit
