"""In which unit a timestamp is counted: guessed by the clock, only to be told."""

from __future__ import annotations

from servioticy.domain.model import Timestamp

PER_SECOND = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
EARLIEST, LATEST = 0.1, 2.0
"""Parts of the time since 1970 between which a timestamp is held to be one: today from 1975 to
2083. Units are a factor of 1,000 apart, so a timestamp is of one unit at most."""


def unit_of(timestamp: Timestamp, now: float) -> str | None:
    """Return in which unit this is a time not too far from now; None: it counts something else."""
    for unit, per_second in PER_SECOND.items():
        if EARLIEST * now <= timestamp / per_second <= LATEST * now:
            return unit
    return None


def unlike(timestamp: Timestamp, last: Timestamp, now: float) -> str:
    """Return what to tell of a timestamp in another unit than the last one; else nothing."""
    unit, before = unit_of(timestamp, now), unit_of(last, now)
    if unit is None or before is None or unit == before:
        return ""
    return (
        f"lastUpdate {timestamp} is in {unit}, the last one of the stream, {last}, is in {before}"
        ": the larger number counts as the newer, send all in one unit"
    )
