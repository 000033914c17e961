"""When a composite stream computes, and with which timestamp: the paper's section 3.4."""

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


def triggers_by_input(trigger: Timestamp, last_use: Timestamp | None) -> bool:
    """Return the rule of `staleness: "input"`: newer than what was last used of the same source.

    So one source whose clock runs ahead does not silence the others.
    """
    return last_use is None or trigger > last_use


def moved_past(trigger: Timestamp, last_output: Timestamp | None) -> Timestamp:
    """Return the time of a trigger that may be older than the last output: then one tick after it.

    Timestamps of a stream only advance, or what is computed from it would be stale.
    """
    return trigger if last_output is None else max(trigger, last_output + 1)


def output_timestamp(
    trigger: Timestamp, inputs: Iterable[Timestamp], last_output: Timestamp | None
) -> Timestamp:
    """Return the largest timestamp of what went into the output."""
    return max(trigger, *inputs, trigger if last_output is None else last_output)


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
